"""The datasets of a bundle are published, each after those it needs.

How many steps that takes is known only when it starts.
"""

from graphlib import TopologicalSorter

from pawlflow import Retry, effect, flow

OPTIONS = {"timeout": "10m", "retry": Retry(max=3, initial="200ms")}


@flow(build=True, timeout="6h", max_parallel=8)
def bundle_publish(bundle, datasets):
    """One step for each dataset, and one that seals the bundle.

    Publishing again is harmless, and what was seen cannot be unseen: there is nothing to undo.
    """
    by_name = {each["name"]: each for each in datasets}
    needs = {name: each.get("needs", []) for name, each in by_name.items()}
    strangers = {each for wanted in needs.values() for each in wanted} - by_name.keys()
    if strangers:
        raise ValueError(f"datasets need {sorted(strangers)}, and the bundle has none of that name")
    done = {}
    for name in TopologicalSorter(needs).static_order():
        done[name] = effect(
            "publishing.v1.dataset.publish",
            {"name": name, "revision": by_name[name]["revision"]},
            name=f"publish-{name}",
            after=[done[each] for each in needs[name]],
            **OPTIONS,
        )
    sealed = effect(
        "publishing.v1.bundle.seal",
        {"bundle": bundle, "datasets": len(done)},
        name="seal",
        after=list(done.values()),
        **OPTIONS,
    )
    return {"datasets": sealed.datasets}
