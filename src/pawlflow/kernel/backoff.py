"""Back-off: how long until the next attempt."""

from pawlflow.definition.shape import Retry


def delay_ms(retry: Retry, n: int) -> int:
    """The pause before the n-th retry (n from 1), capped."""
    if retry.backoff == "constant":
        delay: int = retry.initial_ms
    elif retry.backoff == "linear":
        delay = retry.initial_ms * n
    else:  # beyond 2^63 ms every cap has long been reached
        delay = retry.initial_ms << min(n - 1, 63)
    return min(delay, retry.cap_ms)
