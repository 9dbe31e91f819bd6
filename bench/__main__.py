"""Run the benches named on the command line, or all of them: python -m bench [NAME ...]."""

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    """Run each bench in turn; the exit code is the worst of theirs."""
    known = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no bench named {', '.join(unknown)}; there are: {', '.join(known) or 'none yet'}")
        return 2
    if not known:
        print("no bench is written yet")
    return max([run(name) for name in wanted or known], default=0)


def run(name: str) -> int:
    """Run one bench; a module without a main is a helper of the others."""
    bench = getattr(import_module(f"bench.{name}"), "main", None)
    if bench is None:
        return 0
    print(f"== {name}")
    return int(bench([]) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
