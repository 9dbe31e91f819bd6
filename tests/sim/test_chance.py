"""Chance, faults and time of the simulator: nothing in it depends on anything it should not."""

import pytest

from pawlflow.testing.sim.chance import Dice, chance
from pawlflow.testing.sim.faults import RATES, Faults, swarm
from pawlflow.testing.sim.patching import patched
from pawlflow.testing.sim.planted import BUGS, planted
from pawlflow.testing.sim.run import run
from pawlflow.testing.sim.setup import KNOBS, limits_of, setup_of
from pawlflow.testing.sim.world import EVENTS_MAX, Violated, World


def world(allowed=None, rates=None):
    """A world without anybody in it."""
    dice = Dice(7)
    return World(dice, Faults(dice, rates or {}, allowed))


def test_a_draw_depends_on_seed_site_and_count_alone():
    """So a fault that is taken away shifts no other."""
    one, other = Dice(3), Dice(3)
    first = [one.roll("a") for _ in range(5)]
    mixed = [(other.roll("b"), other.roll("a"))[1] for _ in range(5)]
    assert first == mixed == [chance(3, "a", n) for n in range(5)]
    assert len(set(first)) == 5
    assert all(0 <= each < 1 for each in first)
    assert {Dice(s).between("n", 1, 3) for s in range(60)} == {1, 2, 3}


def test_faults_fire_by_rate_or_by_name_and_not_after_the_storm():
    """A tape names the faults that strike; nothing else does, and nothing once it is over."""
    certain = world(rates={"bus.drop": 1.0}).faults
    assert certain.fires("bus.drop", "x")
    assert not certain.fires("bus.double", "x")
    assert [each.id for each in certain.fired] == ["bus.drop:x#0"]

    named = world(allowed=frozenset({"bus.drop:x#1"})).faults
    assert [named.fires("bus.drop", "x") for _ in range(3)] == [False, True, False]
    named.healed = True
    assert not named.fires("bus.drop", "x")


def test_a_seed_has_some_kinds_of_fault_and_not_others():
    """Swarm testing: every kind is on in some seeds and off in others, and may be forbidden."""
    drawn = [swarm(Dice(seed), frozenset({"bus.drop"})) for seed in range(100)]
    for kind in set(RATES) - {"bus.drop"}:
        assert 0 < sum(kind in rates for rates in drawn) < 100
    assert not any("bus.drop" in rates for rates in drawn)


def test_time_passes_in_order_and_only_forwards():
    """What is planned for one moment happens in the order in which it was planned."""
    made = world()
    seen = []
    for delay, name in ((5, "late"), (1, "a"), (1, "b")):
        made.after(delay, lambda name=name: seen.append((made.now, name)))
    made.run(10)
    assert seen == [(1, "a"), (1, "b"), (5, "late")]
    assert made.now == 10


def test_a_world_that_goes_in_circles_is_stopped():
    """A run ends, whatever the engine does."""
    made = world()

    def again():
        made.after(0, again)

    again()
    with pytest.raises(Violated, match=f"{EVENTS_MAX} events"):
        made.run(10)


def test_a_patch_is_taken_back_even_if_inherited():
    """Nothing of a planted bug stays behind."""

    class Base:
        def value(self):
            return 1

    class Child(Base):
        pass

    with patched([(Child, "value", lambda _: 2)]):
        assert Child().value() == 2
    assert Child().value() == 1
    assert "value" not in vars(Child)
    with pytest.raises(AttributeError), patched([(Child, "gone", None)]):
        pass


@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_bug_leaves_no_trace(name):
    """What a bug changes is there, and as it was when the bug is gone."""
    changes = BUGS[name].changes()
    before = [vars(where).get(attribute) for where, attribute, _ in changes]
    with planted(name):
        pass
    assert [vars(where).get(attribute) for where, attribute, _ in changes] == before


def test_every_limit_of_the_engine_has_its_knob():
    """A limit that moved to another room would no longer be small in the simulator."""
    knobs = {name: choices[0] for name, choices in KNOBS.items()}
    assert {value for _, _, value in limits_of(knobs)} <= set(knobs.values())


def test_a_run_tells_its_story_and_its_faults():
    """The same seed gives the same trace; without any fault it has another."""
    setup = setup_of(4)
    whole = run(setup, story=True)
    assert run(setup).trace == whole.trace
    assert len(whole.story) > 20
    quiet = run(setup, frozenset())
    assert quiet.violation is None
    assert quiet.fired == []
    assert quiet.trace != whole.trace
