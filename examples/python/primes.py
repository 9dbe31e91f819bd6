"""A script without an event loop: many starts in one call, and a step that computes."""

from pawlflow import Pawl, flow, step


@step(pool="process", timeout="1m", mutates=False)
def primes(below: int) -> int:  # in a process of its own: nothing else waits for it
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, below))


@flow(timeout="5m")
def count(request):
    return primes(request.below)


def main() -> None:
    with Pawl.blocking("sqlite:///primes.db") as pawl:
        many = pawl.start_many(count, [(f"below-{n}", {"below": n}) for n in (10, 100, 1000)])
        for started in many:
            print(f"{started.id}: {started.run.result(timeout='1m')}")
        again = pawl.start_many(count, [("below-10", {"below": 10}), ("below-10", {"below": 11})])
        for started in again:
            print(f"{started.id}: existing {started.existing}, error {started.error}")


if __name__ == "__main__":  # the processes import this file, too
    main()
