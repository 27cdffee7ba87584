"""The operations of a workload: what its tasks can ask of their guest, under the names that they have in Rust.

A task yields them, and goes on when the operation has ended:

>>> yield compute(10 * US)

Times are nanoseconds. A call without `yield` does nothing.
"""

from __future__ import annotations

#: One operation. Make it with the functions of this module.
Operation = tuple[str | float | bool, ...]

_YIELD_VCPU: Operation = ("yield_vcpu",)
_ITEM_DONE: Operation = ("item_done",)


def compute(work: float, *, kernel: bool = False) -> Operation:
    """Uses the CPU for `work` ns, in the application or in the kernel. Kernel code is not preempted by other tasks."""
    return ("compute", work, kernel)


def sleep(time: float) -> Operation:
    """Sleeps for at least `time` ns."""
    return ("sleep", time)


def yield_vcpu() -> Operation:
    """Makes the vCPU give up its pCPU; it stays runnable."""
    return _YIELD_VCPU


def section(lock: str, work: float, *, irqs_off: bool = False) -> Operation:
    """Takes a lock, computes for `work` ns in the kernel, releases it. With `irqs_off`, interrupts are off meanwhile."""
    return ("section", lock, work, irqs_off)


def acquire(lock: str, *, irqs_off: bool = False) -> Operation:
    """Takes a lock, which this task must release."""
    return ("acquire", lock, irqs_off)


def release(lock: str) -> Operation:
    """Releases a lock that this task has taken."""
    return ("release", lock)


def item_done() -> Operation:
    """Counts one item of this task as done: the metric `items` counts them. Takes no time."""
    return _ITEM_DONE


def answered(since: float) -> Operation:
    """Counts one item as done for a requester that has waited since the time `since`, in ns. Takes no time."""
    return ("answered", since)
