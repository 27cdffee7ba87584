"""A workload in Python: philosophers who think, and eat with two forks."""

from collections.abc import Iterator

import overspin
from overspin import US
from overspin.operations import Operation, acquire, compute, item_done, release

FORKS = [f"fork{i}" for i in range(5)]


@overspin.register_workload(locks=FORKS)
def dinner(env: overspin.Env) -> Iterator[Operation]:
    """Philosophers who think, and eat with two forks."""
    left, right = FORKS[env.task % 5], FORKS[(env.task + 1) % 5]
    # Everybody takes the lower fork first, so nobody waits in a circle.
    first, second = sorted([left, right])
    for _ in range(100):
        yield compute(env.exponential(20 * US))
        yield acquire(first)
        yield acquire(second)
        yield compute(5 * US, kernel=True)
        yield release(second)
        yield release(first)
        yield item_done()
