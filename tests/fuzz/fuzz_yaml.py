"""Fuzz the reader of definitions: `python tests/fuzz/fuzz_yaml.py [corpus] -max_total_time=60`.

Whatever the bytes are, findings come out, each inside the file and with a code that is explained;
or workflows, whose canonical form gives them back.
"""

import sys

import atheris

with atheris.instrument_imports(include=["pawlflow.definition"]):
    from pawlflow.definition.canonical import definition_bytes, definition_from_bytes
    from pawlflow.definition.codes import CODES
    from pawlflow.definition.finding import RefusedError
    from pawlflow.definition.load import load_text, load_workflows
    from pawlflow.testing.scenario import read_scenario


def check(data):
    """Read as a file of workflows and scenarios."""
    workflows, findings = load_workflows(data, "f.yaml")
    lines = data.decode(errors="replace").splitlines() or [""]
    for found in findings:
        assert found.code in CODES
        assert found.message
        assert 1 <= found.line <= len(lines) + 1
        assert found.column >= 1
    for workflow in workflows:
        assert definition_from_bytes(definition_bytes(workflow)) == workflow
    check_scenarios(data)


def check_scenarios(data):
    """Scenarios too give themselves or findings."""
    try:
        documents = load_text(data, "f.yaml")
    except RefusedError as error:
        assert error.findings
        return
    for document in documents:
        if document.kind == "Scenario":
            scenario, findings = read_scenario(document.node, load_file=lambda _: data)
            assert scenario or findings


def main():
    """Run until stopped, or as long as the arguments of libFuzzer say."""
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
