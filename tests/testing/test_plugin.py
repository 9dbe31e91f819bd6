"""The pytest plugin, as a project that uses it meets it: whole runs of pytest in a folder."""

import subprocess
import sys

import pytest

from tests.testing.plugin_kit import FORGETFUL, GOOD, SCENARIO, run
from tests.testing.plugin_kit import project as project

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.req("R198")


def test_an_async_test_runs_without_any_other_plugin(project):
    """The fixture is all it needs."""
    project.makepyfile(GOOD)
    run(project).assert_outcomes(passed=1)


def test_every_turn_is_crashed(project):
    """The test passes with each crash; how many there were is told at the end."""
    project.makepyfile(GOOD)
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*pawl: crashes*", "1 test was run again with 14 crashes"])


def test_a_test_that_is_not_durable_fails_and_names_the_turn(project):
    """It passes alone. With crashes, the one it does not survive is named, and its side."""
    project.makepyfile(test_a=FORGETFUL)
    run(project).assert_outcomes(passed=1)
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*test_it_ships_once [[]crash before the commit of turn 4 of o-1[]]*",
            '*shipped == [[]"a parcel"[]]',
            "the test passes without a crash, and fails with this:",
            "  crash before the commit of turn 4 of o-1",
            "FAILED *::test_it_ships_once - crash before*",
        ]
    )


def test_each_crash_has_fixtures_of_its_own(project):
    """What one run leaves behind is not there in the next; wider fixtures are made once."""
    project.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="module")
        def once(tmp_path_factory):
            made = []
            yield made
            print("the module had", len(made))

        class TestOrders:
            seen = None

            @pytest.mark.parametrize("name", ["a", "b"])
            async def test_it(self, pawl, tmp_path, once, name):
                assert self.seen is None
                self.seen = name
                once.append(name)
                (tmp_path / "new").mkdir()
                pawl.load("order.yaml")
                pawl.script("*", {})
                await pawl.start("order", id=name)
                await pawl.skip("4d")

        def test_other(once):
            assert once == ["a"] * 11 + ["b"] * 11
        """
    )
    run(project, "--pawl-crash-everywhere").assert_outcomes(passed=3)


def test_a_plain_test_is_crashed_too(project):
    """With the blocking twin, on a file, as the project's own fixture says."""
    project.makepyfile(
        """
        import pytest

        @pytest.fixture
        def pawl_options(tmp_path):
            return {"url": f"sqlite:///{tmp_path}/pawl.db", "now": "2030-01-01T00:00Z"}

        @pytest.fixture
        def shop(pawl_blocking):
            pawl_blocking.load("order.yaml")
            pawl_blocking.script("*", {})
            return pawl_blocking

        def test_it(shop):
            run = shop.start("order", id="o-1")
            assert run.result(timeout="4d") is None
            assert shop.now.isoformat() == "2030-01-04T00:00:00+00:00"
        """
    )
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["1 test was run again with 10 crashes"])


def test_of_many_turns_a_sample_is_crashed(project, monkeypatch):
    """More than 200 turns: 200 of them, and it says so; another option crashes all."""
    monkeypatch.setattr("pawlflow.testing.plugin_crashes.TURNS_MAX", 3)
    project.makepyfile(GOOD)
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [
            "1 test was run again with 6 crashes",
            "*::test_it_ships_once: more than 3 turns, a seeded sample of 3 was crashed; *",
        ]
    )
    done = run(project, "--pawl-crash-all")
    done.stdout.fnmatch_lines(["1 test was run again with 14 crashes"])


def test_a_test_that_runs_otherwise_each_time_says_so(project):
    """A crash that was not reached is no crash that was survived."""
    project.makepyfile(
        """
        runs = []

        async def test_it(pawl):
            runs.append(1)
            pawl.load("order.yaml")
            pawl.script("*", {})
            if len(runs) == 1:
                await pawl.start("order", id="o-1")
        """
    )
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        ["1 test was run again with 2 crashes", "*4 of its crashes were not reached*"]
    )


def test_what_fails_without_a_crash_is_run_once(project):
    """As it is: a test that fails, is skipped, expected to fail, or breaks in its fixtures."""
    project.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken(pawl):
            yield
            raise OSError("in the teardown")

        async def test_fails(pawl):
            assert False

        async def test_skips(pawl):
            pytest.skip("not now")

        @pytest.mark.xfail
        async def test_is_expected_to_fail(pawl):
            assert False

        async def test_breaks(broken, pawl):
            pawl.load("order.yaml")

        def test_goes_on():
            pass
        """
    )
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(failed=1, skipped=1, xfailed=1, passed=2, errors=1)


def test_other_tests_are_left_alone(project):
    """Options, fixtures of the same name, and async tests of others: nothing changes."""
    project.makepyfile(
        test_own="""
        import pytest

        @pytest.fixture
        def pawl():
            return "a part of a clock"

        def test_it(pawl):
            assert pawl == "a part of a clock"
        """,
        test_other="""
        import sys

        def test_nothing_is_imported():
            assert "pawlflow.testing.lab" not in sys.modules

        async def test_of_nobody():
            pass
        """,
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
    ]
    done = subprocess.run(
        [*command, "--pawl-crash-everywhere"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "2 passed" in done.stdout
    assert "async def functions are not natively supported" in done.stdout
    assert "pawl: crashes" not in done.stdout


def test_the_wrong_fixture_is_told(project):
    """A plain test cannot await."""
    project.makepyfile("def test_it(pawl): pass")
    done = run(project)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["test_it is no `async def`: use the fixture pawl_blocking*"])


def test_another_plugin_may_run_the_test_on_its_own_loop(project):
    """The lab is entered there, and crashed there."""
    project.makeconftest(
        """
        import asyncio
        import inspect
        import pytest

        class Runner:
            @pytest.hookimpl(tryfirst=True)
            def pytest_pyfunc_call(self, pyfuncitem):
                names = pyfuncitem._fixtureinfo.argnames
                arguments = {name: pyfuncitem.funcargs[name] for name in names}
                if inspect.iscoroutinefunction(pyfuncitem.obj):
                    loop = asyncio.new_event_loop()
                    loop.mine = True
                    loop.run_until_complete(pyfuncitem.obj(**arguments))
                    loop.close()
                    return True

        def pytest_configure(config):
            config.pluginmanager.register(Runner(), "a-runner")
        """
    )
    project.makepyfile(
        """
        import asyncio

        async def test_it(pawl):
            assert asyncio.get_running_loop().mine
            pawl.load("order.yaml")
            pawl.script("*", {})
            run = await pawl.start("order")
            assert await run.result(timeout="4d") is None
        """
    )
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["1 test was run again with 10 crashes"])


def test_anyio_runs_the_tests_that_are_marked_for_it(project):
    """With async fixtures of its own, on its loop."""
    project.makepyfile(
        """
        import asyncio
        import pytest

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.fixture
        async def loop():
            return asyncio.get_running_loop()

        async def test_it(loop, pawl):
            assert asyncio.get_running_loop() is loop
            pawl.load("order.yaml")
            pawl.script("*", {})
            run = await pawl.start("order")
            assert await run.result(timeout="4d") is None
        """
    )
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["1 test was run again with 10 crashes"])


@pytest.mark.parametrize(
    "arguments", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["alone", "xdist"]
)
def test_a_real_run_from_the_command_line(project, arguments):
    """In a process of its own, and in two."""
    project.makepyfile(GOOD)
    project.makefile(".scenario.yaml", fine=SCENARIO % ("fine", "completed"))
    done = project.runpytest_subprocess(
        "-p", "no:cacheprovider", "--pawl-crash-everywhere", *arguments
    )
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["2 tests were run again with 22 crashes"])
