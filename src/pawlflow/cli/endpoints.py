"""`--endpoints FILE`: which effects of a run are carried out by HTTP, in YAML or JSON."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pawlflow.cli.executors import Executors
from pawlflow.cli.output import file_limits, read_file
from pawlflow.cli.session import Session, refuse_findings
from pawlflow.definition.read import Node, plain, read_yaml
from pawlflow.definition.report import EnoughError, Report, suggest
from pawlflow.effects.calling import executor_for
from pawlflow.effects.endpoints import OPTIONS, Endpoint, endpoint_of
from pawlflow.model.trouble import PawlError

# The names of a file, as definitions write theirs.
FIELDS: Final = {
    "url": "url",
    **{name: name for name in OPTIONS if "_" not in name},
    "retryOn": "retry_on",
    "retryAfter": "retry_after",
}
DOCUMENT: Final = "endpoints"


def add_endpoints(here: Session, executors: Executors, given: Path | None) -> None:
    """Register the endpoints of a file, if one is named; ends with 3 where it is not valid."""
    if given is None:
        return
    for endpoint in endpoints_in(here, given):
        try:
            executors.put(executor_for(endpoint, executors))
        except PawlError as error:
            here.end(error.code, f"--endpoints {given}: {error}")


def endpoints_in(here: Session, given: Path) -> list[Endpoint]:
    """The endpoints of a file; every finding in it has its line and column."""
    data = read_file(given, as_json=here.as_json)
    report = Report()
    found: list[Endpoint] = []
    with suppress(EnoughError):
        read = read_yaml(data, str(given), report, limits=file_limits())
        nodes = [each for each in read if each.value is not None]
        if not nodes and not report.errors:
            here.end("http.endpoint", f"--endpoints {given} lists nothing: EFFECT: {{url: ...}}")
        for node in nodes:
            found += table_in(node, report, given.absolute().parent)
    findings = [each for each in report.sorted() if each.severity == "error"]
    if findings:
        refuse_findings(here, findings, {str(given): data.decode("utf-8", "replace")})
    return found


def table_in(node: Node, report: Report, folder: Path) -> list[Endpoint]:
    """The endpoints of a document: below `endpoints`, or by themselves."""
    table = node
    if isinstance(node.value, dict) and node.value.keys() == {DOCUMENT}:
        table = node.value[DOCUMENT]
    if not isinstance(table.value, dict):
        report.error(table.place, "http.endpoint", "expected a mapping: EFFECT: {url: ...}")
        return []
    read = (endpoint_in(table, name, report, folder) for name in table.value)
    return [each for each in read if each is not None]


def endpoint_in(table: Node, name: str, report: Report, folder: Path) -> Endpoint | None:
    """One endpoint, or why it cannot be one, where that is written."""
    node = table.value[name]
    if not isinstance(node.value, dict) or "url" not in node.value:
        message = f"endpoint {name} has no url"
        report.error(table.place_of(name), "http.endpoint", message, "write {url: https://...}")
        return None
    unknown = [key for key in node.value if key not in FIELDS]
    for key in unknown:
        message = f"endpoint {name} has no field {key!r}; its fields are: {', '.join(FIELDS)}"
        report.error(node.place_of(key), "field.unknown", message, suggest(key, FIELDS) or "")
    if unknown:
        return None
    given: dict[str, Any] = {FIELDS[key]: plain(value) for key, value in node.value.items()}
    if isinstance(given.get("ca"), str):
        given["ca"] = str(folder / given["ca"])
    try:
        return endpoint_of(name, given.pop("url"), **given)
    except PawlError as error:
        report.error(place_in(node, error), error.code, str(error))
    return None


def place_in(node: Node, error: PawlError) -> Any:
    """Where the field stands that an error is about."""
    said = str(error).partition(": ")[2]
    for key, option in FIELDS.items():
        if key in node.value and said.startswith(f"{option}="):
            return node.value[key].place
    if "header" in said and "headers" in node.value:
        return node.value["headers"].place
    return node.value["url"].place
