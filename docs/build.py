"""Builds the site of these pages: `python docs/build.py FOLDER`. It needs nothing from elsewhere.

Pages link to files outside of docs/, too: sources, examples, tests. Those become pages of the site
under `source/`, so that it is whole without a repository beside it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
CONFIG: Final = "zensical.toml"
ELSEWHERE: Final = "source"  # where files from outside of docs/ go
FENCE: Final = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<!!)(\[[^\]]*\])\(([^)\s]+)\)")
COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
ADDRESS: Final = re.compile(r"(?:[a-z]+:)?//|[a-z]+:")
LANGUAGES: Final = {".py": "python", ".yaml": "yaml", ".json": "json", ".mjs": "js", ".sql": "sql"}
# What a browser fetches by itself, by tag; an `a` is followed by people.
FETCHED: Final = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}
STYLES: Final = re.compile(r"""url\(\s*["']?((?:https?:)?//[^"')]+)|@import\s+["']([^"']+)""")


def main(out: Path) -> int:
    """Stage, build, look at what came out; only what is whole goes to the folder."""
    with tempfile.TemporaryDirectory(prefix="pawl-docs-") as name:
        folder = Path(name)
        pages = stage(folder)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        plain = {**os.environ, "NO_COLOR": "1"}
        done = subprocess.run(
            command, cwd=folder, env=plain, check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            told, _, _ = COLOUR.sub("", done.stdout + done.stderr).partition("Traceback (most")
            sys.stderr.write(told)
            return 1
        site = folder / "site"
        if problems := [*broken(site), *foreign(site)]:
            sys.stderr.write("".join(f"{problem}\n" for problem in problems))
            return 1
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(site, out)
    sys.stdout.write(f"{pages} pages in {out}; open {out / 'index.html'}\n")
    return 0


# Staging


def stage(folder: Path) -> int:
    """Copy the pages, and everything they lead to, where the site is made; gives their number."""
    shutil.copy(ROOT / CONFIG, folder)
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    waiting = sorted(DOCS.rglob("*.md"))
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if path.suffix != ".md":
            continue
        text, leads = relinked(path)
        write(folder, path, text)
        new = [each for each in leads if each not in seen]
        seen.update(new)
        waiting += new
    for path in seen:
        if path.suffix != ".md":
            write(folder, path, page_of(path, seen))
    return len(seen)


def write(folder: Path, path: Path, text: str) -> None:
    """Put the page of a file where it belongs."""
    to = folder / "docs" / place_of(path)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text)


def place_of(path: Path) -> Path:
    """Where a file of the repository lies among the pages of the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    inside = Path(ELSEWHERE) / path.relative_to(ROOT)
    if path.is_dir():
        return inside / "index.md"
    return inside if path.suffix == ".md" else inside.with_name(f"{path.name}.md")


def relinked(path: Path) -> tuple[str, list[Path]]:
    """The page of a file, with links that hold in the site, and what they lead to."""
    leads: list[Path] = []

    def follow(link: re.Match[str]) -> str:
        target, _, heading = link[2].partition("#")
        if not target or ADDRESS.match(target):
            return link[0]
        meant = Path(os.path.normpath(path.parent / unquote(target)))
        if not meant.exists() or not meant.is_relative_to(ROOT):
            return link[0]  # zensical tells where it stands
        leads.append(meant)
        return f"{link[1]}({between(path, meant)}{'#' if heading else ''}{heading})"

    parts = FENCE.split(path.read_text())
    told = [part if FENCE.match(part) else LINK.sub(follow, spaced(part)) for part in parts]
    return "".join(told), leads


def spaced(text: str) -> str:
    """A list begins after a blank line here, where other readers of Markdown need none."""
    return re.sub(r"^(?![-*>|#\s]|\d+\. )(.+)\n(?=[-*] |\d+\. )", r"\1\n\n", text, flags=re.M)


def between(page: Path, meant: Path) -> str:
    """The way from the page of one file to that of another."""
    return os.path.relpath(place_of(meant), place_of(page).parent)


def page_of(path: Path, seen: set[Path]) -> str:
    """A page for a file that is none, or for a folder; there, what has a page is linked."""
    head = "---\nsearch:\n  exclude: true\n---\n\n"
    title = f"# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if is_shown(each))
        lines = [
            f"- [{f.name}]({between(path, f)})\n" if f in seen else f"- {f.name}\n" for f in files
        ]
        return head + title + "".join(lines)
    fence = "`" * 4
    language = LANGUAGES.get(path.suffix, "text")
    return f"{head}{title}{fence}{language}\n{path.read_text()}{fence}\n"


def is_shown(path: Path) -> bool:
    """Is this a file or a folder that was written, rather than left behind?"""
    if path.is_dir():
        return any(map(is_shown, path.iterdir()))
    return path.suffix in (*LANGUAGES, ".md", ".txt")


# Looking at what came out


class Page(HTMLParser):
    """The ids of a page, where it leads, and what a browser fetches for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is of interest."""
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])


def broken(site: Path) -> Iterator[str]:
    """Links and files that lead nowhere, headings included."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in (*page.links, *page.fetched):
            target, _, heading = unquote(link).partition("#")
            if ADDRESS.match(link) or target.startswith("/"):
                continue
            meant = Path(os.path.normpath(path.parent / target)) if target else path
            known = pages.get(meant)
            if not meant.exists() or (known and heading and heading not in known.ids):
                yield f"{path.relative_to(site)}: {link} leads nowhere"


def foreign(site: Path) -> Iterator[str]:
    """What a browser would fetch from elsewhere: fonts, scripts, pictures, styles."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text()
        if 'class="mermaid"' in text:
            yield f"{path.relative_to(site)} has a diagram, whose script would be fetched"
        for address in Page(text).fetched:
            if ADDRESS.match(address) and not address.startswith("data:"):
                yield f"{path.relative_to(site)} fetches {address}"
    for path in sorted(site.rglob("*.css")):
        for found in STYLES.findall(path.read_text()):
            yield f"{path.relative_to(site)} fetches {''.join(found)}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site").absolute()))
