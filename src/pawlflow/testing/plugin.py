"""The pytest plugin: labs as fixtures, a crash at every turn, scenario files as tests.

It is loaded into every test run where Pawl is installed: it imports little, and touches only tests
that ask for its fixtures, and files that are named like scenarios.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pawlflow.testing.plugin_keys import CRASHES, LABS, POINT, crashes_wanted

if TYPE_CHECKING:
    from pawlflow.testing.lab import Lab
    from pawlflow.testing.lab_blocking import BlockingLab
    from pawlflow.testing.lab_hosting import HostedLab

FIXTURES: Final = ("pawl", "pawl_blocking")
SUFFIXES: Final = (".scenario.yaml", ".scenario.yml")
RUNNERS: Final = ("asyncio", "anyio", "trio")  # marks of other plugins that run coroutines
CONSIDERED: Final = ("passed", "failed", "xfailed", "xpassed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The words of the command line and of the configuration."""
    group = parser.getgroup("pawl", "Pawl workflows")
    group.addoption(
        "--pawl-crash-everywhere",
        action="store_true",
        help="run tests that use pawl again, with a crash before and after the commit of each turn",
    )
    group.addoption(
        "--pawl-crash-all",
        action="store_true",
        help="the same, without sampling tests of more than 200 turns",
    )
    words = "collect *.scenario.yaml files as tests (default: true)"
    parser.addini("pawl_scenarios", words, type="bool", default=True)


# Fixtures


@pytest.fixture
def pawl_options() -> dict[str, Any]:
    """What the labs of the fixtures are made with, such as `url` and `now`. To be overridden."""
    return {}


@pytest.fixture
def pawl(request: pytest.FixtureRequest, pawl_options: dict[str, Any]) -> "Iterator[Lab]":
    """A Lab for an async test: a real engine in memory, under a virtual clock."""
    from pawlflow.testing.lab import Lab

    item = request.node
    if not inspect.iscoroutinefunction(item.obj):
        message = f"{item.name} is no `async def`: use the fixture pawl_blocking, or make it one"
        pytest.fail(message, pytrace=False)
    lab = Lab(**pawl_options, **crash_for(item))
    labs_of(item).append(lab)
    plain = item.obj
    item.obj = entering(plain, lab)
    yield lab
    item.obj = plain


@pytest.fixture
def pawl_blocking(
    request: pytest.FixtureRequest, pawl_options: dict[str, Any]
) -> "Iterator[BlockingLab]":
    """A lab for a plain `def` test."""
    from pawlflow.testing.lab_blocking import BlockingLab

    with BlockingLab(**pawl_options, **crash_for(request.node)) as lab:
        labs_of(request.node).append(lab.lab)
        yield lab


def labs_of(item: pytest.Item) -> "list[HostedLab]":
    """The labs that a test has asked for."""
    return item.stash.setdefault(LABS, [])


def crash_for(item: pytest.Item) -> dict[str, Any]:
    """Where the next lab of a test is to crash, if it is."""
    which, point = item.stash.get(POINT, (-1, None))
    return {"crash": point} if which == len(labs_of(item)) else {}


def entering(test: Callable[..., Any], lab: "Lab") -> Callable[..., Any]:
    """The same test inside of the lab, on whatever loop it is run."""

    @functools.wraps(test)
    async def entered(*args: Any, **kwargs: Any) -> Any:
        async with lab:
            return await test(*args, **kwargs)

    return entered


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run an async test that uses a lab, unless another plugin is there to do it."""
    test = pyfuncitem.obj
    if LABS not in pyfuncitem.stash or not inspect.iscoroutinefunction(test):
        return None
    has = pyfuncitem.config.pluginmanager.hasplugin
    if any(has(name) and pyfuncitem.get_closest_marker(name) for name in RUNNERS):
        return None
    if has("anyio") and "anyio_backend" in pyfuncitem.fixturenames:
        return None
    import asyncio

    names = inspect.signature(test).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    with asyncio.Runner() as runner:
        runner.run(test(**arguments))
    return True


# Crashes


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object | None:
    """Run a test that uses a lab again and again, each time with another crash."""
    if not isinstance(item, pytest.Function) or not crashes_wanted(item.config):
        return None
    if not any(name in FIXTURES for name in item.fixturenames):
        return None
    from pawlflow.testing.plugin_crashes import run_with_crashes

    run_with_crashes(item, nextitem)
    return True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How many crashes there were, and which tests had only some of theirs."""
    if not crashes_wanted(config):
        return
    reports = [each for kind in CONSIDERED for each in terminalreporter.stats.get(kind, ())]
    told = [
        (each.nodeid, value)
        for each in reports
        for name, value in getattr(each, "user_properties", ())
        if name == CRASHES
    ]
    if not told:
        return
    terminalreporter.section("pawl: crashes")
    crashes = sum(value["crashes"] for _, value in told)
    tests = "1 test was" if len(told) == 1 else f"{len(told)} tests were"
    terminalreporter.line(f"{tests} run again with {crashes} crashes")
    for name, value in told:
        for note in value["notes"]:
            terminalreporter.line(f"{name}: {note}")


# Scenarios


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files, unless the configuration says `pawl_scenarios = false`."""
    if not file_path.name.endswith(SUFFIXES) or not parent.config.getini("pawl_scenarios"):
        return None
    from pawlflow.testing.plugin_scenarios import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)
