"""Schedulers and workloads of your own, in Python: slow, and easy to change.

A registered part stands in scenarios under its name, like a built-in one. Times are whole nanoseconds; `US`, `MS` and
`SEC` help: `10 * MS`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, TypeVar, overload

from overspin import _overspin
from overspin._overspin import Env, Machine
from overspin.operations import Operation

#: A microsecond in ns.
US = 1_000
#: A millisecond in ns.
MS = 1_000_000
#: A second in ns.
SEC = 1_000_000_000


class Scheduler:
    """A vCPU scheduler. Derive a class, write `wake`, `sleep` and `schedule`, and register it.

    vCPUs and pCPUs are numbers from 0. A vCPU *waits* from `wake` until `schedule` chooses it or `sleep` withdraws it, and
    again when `schedule` takes it off its pCPU although it can still run. Keep the waiting vCPUs in a queue: that is
    all that is left to do. The package tells an idle pCPU that there is work, arms timers, and checks each decision.

    Each run makes one object of the class for each pool of pCPUs, and calls `__init__` without arguments. Equal calls must
    have equal answers: draw random numbers from a `random.Random` with a seed, and do not look at a clock.

    Attributes:
        name: the name in scenarios; without one, the name of the class, as `round-robin` of `RoundRobin`.
        work_conserving: whether no pCPU idles while a vCPU that may run there waits; `check_scheduler` checks it.
        machine: the machine, to read; there only while a method is called.
    """

    name: ClassVar[str] = ""
    work_conserving: ClassVar[bool] = True
    machine: ClassVar[Machine] = Machine()

    def start(self, now: int) -> None:
        """Called once, when the machine is known and before there are vCPUs."""

    def wake(self, now: int, vcpu: int) -> None:
        """`vcpu`, which did not wait, waits from now on: queue it. To preempt a pCPU, call `self.machine.resched`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method wake(self, now, vcpu)")

    def sleep(self, now: int, vcpu: int) -> None:
        """`vcpu`, which waited, can no longer run: take it off the queue."""
        raise NotImplementedError(f"{type(self).__name__} needs a method sleep(self, now, vcpu)")

    def yield_now(self, now: int, vcpu: int) -> None:
        """`vcpu`, which runs, yields. `schedule` follows for its pCPU."""

    def schedule(self, now: int, pcpu: int) -> int | None | tuple[int | None, int | None]:
        """Chooses what `pcpu` runs next: a vCPU for which `self.machine.can_run(vcpu, pcpu)` holds, or None to idle.

        With a time, `(vcpu, time)`, it is called again after that time at the latest. `self.machine.current(pcpu)` is the
        vCPU that has run until now; if that can still run and is not chosen, it waits: queue it.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method schedule(self, now, pcpu)")

    def timer(self, now: int) -> None:
        """The timer that `self.machine.set_timer` set has expired."""


class Checked(NamedTuple):
    """What the conformance suite did with a scheduler that passed it."""

    #: Calls to the scheduler's hypervisor.
    calls: int
    #: Passes after which a pCPU ran something else.
    switches: int
    #: Two schedulers with equal digests have made the same decisions.
    digest: int


S = TypeVar("S", bound=type[Scheduler])
#: A function that makes the operations of a task.
Program = Callable[[Env], Iterable[Operation]]


def register_scheduler(scheduler: S) -> S:
    """Makes a class of `Scheduler` known under its name, for `host.scheduler` and pools. Use it as a decorator.

    A second class of that name replaces the first. The part is known in this process only: register it in each process of
    an executor, too.

    Raises:
        NameTaken: if a built-in scheduler has the name.
        TypeError: if it is no class of `Scheduler`.
    """
    if not (isinstance(scheduler, type) and issubclass(scheduler, Scheduler)):
        raise TypeError(f"{scheduler!r} is no class of overspin.Scheduler: write class Name(overspin.Scheduler)")
    _overspin.register_scheduler(_name(scheduler), _brief(scheduler), scheduler)
    return scheduler


@overload
def register_workload(
    program: Program, *, name: str | None = None, locks: Sequence[str] = (), endless: bool = False
) -> Program: ...
@overload
def register_workload(
    *, name: str | None = None, locks: Sequence[str] = (), endless: bool = False
) -> Callable[[Program], Program]: ...
def register_workload(
    program: Program | None = None,
    *,
    name: str | None = None,
    locks: Sequence[str] = (),
    endless: bool = False,
) -> Program | Callable[[Program], Program]:
    """Makes a generator known as a workload, for `domain.workload.kind`. Use it as a decorator.

    The function is called once for each task, with its `Env`, and yields operations of `overspin.operations`. The task ends
    when the generator does. The workload has one key, `threads`: its tasks; 0, the default, is one on each vCPU.

    Args:
        program: the function.
        name: the name in scenarios; without one, the name of the function, with `-` for `_`.
        locks: the names of all locks that it takes.
        endless: the generators do not end. A run does not wait for such a workload if another one ends.

    Raises:
        NameTaken: if a built-in workload has the name.
        TypeError: if it is no function.
    """

    def register(program: Program) -> Program:
        if not callable(program):
            raise TypeError(f"{program!r} is no function: write a generator that takes an Env")
        if isinstance(locks, str):
            raise TypeError(f"locks is the string {locks!r}, but must be a list of names")
        kind = name or getattr(program, "__name__", type(program).__name__).replace("_", "-")
        _overspin.register_workload(kind, _brief(program), program, list(locks), endless)
        return program

    return register if program is None else register(program)


def check_scheduler(
    scheduler: type[Scheduler] | str,
    *,
    seeds: int = 10,
    calls: int = 2_000,
    runs_within_s: float | None = 1.0,
    idles_at_most_s: float | None = None,
) -> Checked:
    """Runs the conformance suite that all schedulers written in Rust pass. Takes about a second for a class in Python.

    The suite makes random calls from a seed, as a hypervisor would, on random machines: vCPUs come and go, pCPUs leave and
    come back, affinities change, time jumps. It checks each decision; that equal calls have equal answers; and, at the end,
    that every vCPU runs and no pCPU idles beside work.

    Args:
        scheduler: a class, which is registered; or the name of a registered or built-in scheduler.
        seeds: machines and sequences of calls.
        calls: random calls of each; every sequence is run twice.
        runs_within_s: seconds within which a vCPU that computes must run; None: it may starve.
        idles_at_most_s: seconds for which a pCPU may idle beside work; without it, 0 for a class that says
            `work_conserving`, and otherwise no limit.

    Raises:
        SchedulerError: if a rule is broken; it names the rule, the seed and the last calls.
        Exception: what a method raises.
    """
    if isinstance(scheduler, str):
        name = scheduler
    else:
        name = _name(register_scheduler(scheduler))
        if idles_at_most_s is None and scheduler.work_conserving:
            idles_at_most_s = 0.0
    return Checked(*_overspin.check_scheduler(name, seeds, calls, runs_within_s, idles_at_most_s))


def _name(scheduler: type[Scheduler]) -> str:
    """The name of a class in scenarios."""
    return scheduler.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", scheduler.__name__).lower()


def _brief(part: object) -> str:
    """The first line of its documentation."""
    lines = (inspect.getdoc(part) or "").splitlines()
    return lines[0] if lines else ""
