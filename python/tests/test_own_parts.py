"""Schedulers and workloads in Python."""

from __future__ import annotations

import _thread
import importlib.util
import threading
import time
import traceback
from collections.abc import Iterator
from types import ModuleType

import pytest
from conftest import ROOT, SMALL

import overspin
from overspin import MS, US
from overspin.operations import (
    Operation,
    acquire,
    answered,
    compute,
    item_done,
    release,
    section,
    sleep,
    yield_vcpu,
)


def example(name: str) -> ModuleType:
    """A module of `python/examples`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "python/examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RoundRobin: type[overspin.Scheduler] = example("round_robin").RoundRobin
Lottery: type[overspin.Scheduler] = example("lottery").Lottery
example("dinner")

#: Six vCPUs in two domains on two pCPUs, with sleeps, yields of spinners and a change of affinity.
CROWDED = """
name = "crowded"
limit = "400ms"
[host]
cores = 2
[[domain]]
name = "a"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop", section = "5us", outside = "40us" }
[[domain]]
name = "b"
vcpus = 2
lock = "xen-pv"
workload = { kind = "burn-wait", burn = "700us", wait = "300us", wait_distribution = "exponential" }
[[event]]
at = "100ms"
domain = "a"
set = { affinity = ["1"] }
"""


def crowded() -> overspin.Scenario:
    return overspin.Scenario.from_toml(CROWDED.split("[[event]]")[0])


def outcome(result: overspin.Result) -> tuple[str, list[object]]:
    """All that was measured, without the name of the scheduler."""
    return result.trace_hash, [row for table in (result.metrics, result.vcpus, result.locks) for row in table]


# Schedulers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_round_robin_in_python_equals_the_built_in_one(seed: int) -> None:
    built_in = overspin.run(crowded().set("host.scheduler", "rr"), seed=seed)
    own = overspin.run(crowded().set("host.scheduler", "py-rr"), seed=seed)
    assert outcome(own) == outcome(built_in)
    # It worked: preempted holders of a ticket lock leave no more than some hundred items a second.
    assert own.metric("items", "a") > 100


def test_the_conformance_suite_sees_equal_decisions() -> None:
    # The suite draws affinities, pauses, yields and pools that no scenario here has; the digest is of all decisions.
    own = overspin.check_scheduler(RoundRobin, seeds=15)
    built_in = overspin.check_scheduler("rr", seeds=15, idles_at_most_s=0.0)
    assert own == built_in
    assert own.switches > 500


def test_a_lottery_passes_the_suite_and_shares_by_weight() -> None:
    checked = overspin.check_scheduler(Lottery)
    assert checked.calls > 10_000
    scenario = overspin.Scenario.from_toml("""
limit = "20s"
name = "shares"
[host]
cores = 1
scheduler = "lottery"
[[domain]]
name = "rich"
vcpus = 1
weight = 768
lock = "ticket"
workload = { kind = "burn-wait" }
[[domain]]
name = "poor"
vcpus = 1
weight = 256
lock = "ticket"
workload = { kind = "burn-wait" }
""")
    vcpus = {row["domain"]: row["running_us"] for row in overspin.run(scenario, seed=1).vcpus}
    # Three tickets of four: 2000 draws have a standard deviation of 1 % of all time.
    share = vcpus["rich"] / (vcpus["rich"] + vcpus["poor"])
    assert 0.71 < share < 0.79


def test_equal_seeds_give_equal_results_on_any_thread() -> None:
    scenario = crowded().set("host.scheduler", "lottery").set("limit", "50ms")
    first = overspin.run(scenario, seed=4)
    results: list[overspin.Result] = []
    threads = [threading.Thread(target=lambda: results.append(overspin.run(scenario, seed=4))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.to_json() for result in results] == [first.to_json()] * 3
    assert overspin.run(scenario, seed=5).trace_hash != first.trace_hash


def test_a_run_is_made_again_for_its_slices() -> None:
    result = overspin.run(crowded().set("host.scheduler", "py-rr").set("limit", "20ms"), seed=1)
    assert len(result.slices()) > 100
    assert "holder preempted" in result.explain()


def test_a_pool_has_a_scheduler_of_its_own() -> None:
    text = """
name = "pools"
limit = "50ms"
[host]
cores = 2
scheduler = "credit"
[[host.pool]]
name = "other"
cpus = "1"
scheduler = "SCHEDULER"
[[domain]]
name = "a"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
[[domain]]
name = "b"
vcpus = 2
lock = "ticket"
pool = "other"
workload = { kind = "lock-loop" }
"""
    own = overspin.run(overspin.Scenario.from_toml(text.replace("SCHEDULER", "py-rr")), seed=1)
    built_in = overspin.run(overspin.Scenario.from_toml(text.replace("SCHEDULER", "rr")), seed=1)
    assert outcome(own) == outcome(built_in)


class Forgetful(overspin.Scheduler):
    """Forgets a vCPU that it takes off its pCPU."""

    def __init__(self) -> None:
        self.queue: list[int] = []

    def wake(self, now: int, vcpu: int) -> None:
        self.queue.append(vcpu)

    def sleep(self, now: int, vcpu: int) -> None:
        if vcpu in self.queue:
            self.queue.remove(vcpu)

    def schedule(self, now: int, pcpu: int) -> tuple[int, int] | None:
        for vcpu in self.queue:
            if self.machine.can_run(vcpu, pcpu):
                self.queue.remove(vcpu)
                return vcpu, MS
        return None


class Greedy(Forgetful):
    """Chooses the vCPU 0, whatever that does."""

    def schedule(self, now: int, pcpu: int) -> tuple[int, int] | None:
        return 0, MS


def test_the_suite_finds_a_vcpu_that_is_lost() -> None:
    with pytest.raises(overspin.SchedulerError, match=r"`forgetful` breaks a rule(.|\n)*T[26]: (.|\n)*seed 0; the last calls were"):
        overspin.check_scheduler(Forgetful)


def test_the_suite_finds_a_wrong_choice() -> None:
    with pytest.raises(overspin.SchedulerError, match=r"chose VcpuId\(0\)|put VcpuId\(0\)"):
        overspin.check_scheduler(Greedy)


def test_a_wrong_choice_ends_a_run() -> None:
    overspin.register_scheduler(Greedy)
    with pytest.raises(overspin.SchedulerError, match=r"greedy.schedule\(\d+, \d\) returned vCPU 0, which (is not runnable|runs on another)"):
        overspin.run(crowded().set("host.scheduler", "greedy"), seed=1)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (99, overspin.SchedulerError, "vCPU 99, which does not exist: there are"),
        ((0, -5), overspin.SchedulerError, "has a slice of -5 ns"),
        ("first", TypeError, "str"),
        ((0, "10ms"), TypeError, "'10ms' is no time: give a number of nanoseconds"),
        ((0, 1, 2), ValueError, "length 2"),
        (-1, OverflowError, ""),
    ],
)
def test_a_wrong_answer_is_an_error(answer: object, error: type[Exception], words: str) -> None:
    class Wrong(RoundRobin):  # type: ignore[misc, valid-type]
        name = "wrong"

        def schedule(self, now: int, pcpu: int) -> object:
            return answer

    overspin.register_scheduler(Wrong)
    with pytest.raises(error, match=words):
        overspin.run(crowded().set("host.scheduler", "wrong"), seed=1)


def test_an_exception_keeps_its_traceback() -> None:
    class Broken(RoundRobin):  # type: ignore[misc, valid-type]
        name = "broken"
        left = 20

        def sleep(self, now: int, vcpu: int) -> None:
            super().sleep(now, vcpu)

        def wake(self, now: int, vcpu: int) -> None:
            self.left -= 1
            if self.left == 0:
                raise KeyError("this one")
            super().wake(now, vcpu)

    overspin.register_scheduler(Broken)
    with pytest.raises(KeyError, match="this one") as caught:
        overspin.run(crowded().set("host.scheduler", "broken"), seed=1)
    assert "raise KeyError" in "".join(traceback.format_tb(caught.value.__traceback__))
    # The thread and the engine are as before.
    assert overspin.run(crowded().set("host.scheduler", "py-rr"), seed=1).ending == "limit"


def test_recursion_ends_as_in_python() -> None:
    class Deep(RoundRobin):  # type: ignore[misc, valid-type]
        name = "deep"

        def sleep(self, now: int, vcpu: int) -> None:
            self.sleep(now, vcpu)

        def wake(self, now: int, vcpu: int) -> None:
            self.wake(now, vcpu)

    overspin.register_scheduler(Deep)
    with pytest.raises(RecursionError):
        overspin.run(crowded().set("host.scheduler", "deep"), seed=1)


def test_the_machine_is_there_during_calls_only() -> None:
    with pytest.raises(RuntimeError, match="only while a method"):
        overspin.Machine().current(0)
    seen: list[str] = []

    class Curious(RoundRobin):  # type: ignore[misc, valid-type]
        name = "curious"

        def start(self, now: int) -> None:
            machine = self.machine
            assert (now, machine.pcpus, machine.vcpus) == (0, 2, 0)
            for wrong, number in ((machine.current, 2), (machine.home, 0), (machine.resched, 9)):
                with pytest.raises(IndexError, match="there is no"):
                    wrong(number)
            other = threading.Thread(target=self.from_elsewhere)
            other.start()
            other.join()

        def from_elsewhere(self) -> None:
            try:
                seen.append(str(self.machine.pcpus))
            except RuntimeError as error:
                seen.append(str(error))

    overspin.register_scheduler(Curious)
    overspin.run(crowded().set("host.scheduler", "curious"), seed=1)
    assert len(seen) == 1 and "only while" in seen[0]


def test_a_timer_and_a_time_without_a_vcpu() -> None:
    calls: list[int] = []

    class Timed(RoundRobin):  # type: ignore[misc, valid-type]
        name = "timed"

        def start(self, now: int) -> None:
            self.machine.set_timer(now + 30 * MS)

        def timer(self, now: int) -> None:
            calls.append(now)
            self.machine.set_timer(now + 30 * MS)

    overspin.register_scheduler(Timed)
    plain = overspin.run(crowded().set("host.scheduler", "rr").set("limit", "100ms"), seed=1)
    timed = overspin.run(crowded().set("host.scheduler", "timed").set("limit", "100ms"), seed=1)
    assert calls == [30 * MS, 60 * MS, 90 * MS]
    assert outcome(timed) == outcome(plain)


def test_names() -> None:
    with pytest.raises(overspin.NameTaken, match="a built-in scheduler is called `rr`"):
        overspin.register_scheduler(type("Mine", (RoundRobin,), {"name": "rr"}))
    with pytest.raises(overspin.NameTaken, match="a built-in workload is called `ping`"):
        overspin.register_workload(lambda env: [], name="ping")
    with pytest.raises(TypeError, match="no class of overspin.Scheduler"):
        overspin.register_scheduler(RoundRobin())  # type: ignore[type-var]
    with pytest.raises(overspin.UnknownName, match="did you mean `py-rr`"):
        overspin.check_scheduler("py-rrr")
    with pytest.raises(overspin.ScenarioError, match="py-rr"):
        crowded().set("host.scheduler", "py-rrr")
    assert "py-rr" in overspin.schedulers()["name"]
    assert "dinner" in overspin.workloads()["name"]


def test_a_later_class_of_a_name_replaces_the_earlier() -> None:
    for quantum in (MS, 5 * MS):
        overspin.register_scheduler(type("Again", (RoundRobin,), {"name": "again", "quantum": quantum}))
        own = overspin.run(crowded().set("host.scheduler", "again"), seed=1)
        set_rr = crowded().set("host.scheduler", "rr").set("host.scheduler_params.quantum", f"{quantum // US}us")
        assert outcome(own) == outcome(overspin.run(set_rr, seed=1))


def test_another_world_refuses_parts_in_python() -> None:
    with pytest.raises(overspin.RunError, match="`py-rr` is written in Python, and the world `threads` cannot run it"):
        overspin.run(crowded().set("host.scheduler", "py-rr"), world="threads")


# Workloads ----------------------------------------------------------------------------------------------------------


def with_workload(kind: str, **more: object) -> overspin.Scenario:
    scenario = overspin.Scenario.from_toml(SMALL.replace("lock-loop", kind))
    for key, value in more.items():
        scenario = scenario.set(key.replace("__", "."), value)
    return scenario


@overspin.register_workload(locks=["section"], endless=True)
def own_loop(env: overspin.Env) -> Iterator[Operation]:
    """The built-in `lock-loop`, with fixed times."""
    while True:
        yield section("section", 2 * US, irqs_off=True)
        yield item_done()
        yield compute(10 * US)


def test_a_lock_loop_in_python_equals_the_built_in_one() -> None:
    own = overspin.run(with_workload("own-loop", limit="200ms"), seed=3)
    built_in = overspin.run(with_workload("lock-loop", limit="200ms").set("domain.guest.workload.fixed", True), seed=3)
    assert own.trace_hash == built_in.trace_hash
    assert list(own.metrics) == list(built_in.metrics)


def test_philosophers_finish() -> None:
    result = overspin.run(with_workload("dinner", domain__guest__vcpus=5, host__cores=2, limit="1s"), seed=1)
    assert result.ending == "finished"
    assert [row["items"] for row in result.tasks if row["name"].startswith("dinner")] == [100] * 5
    assert {f"fork{i}" for i in range(5)} <= set(result.locks["name"])


def test_all_operations_take_their_time() -> None:
    times: list[int] = []

    def steps(env: overspin.Env) -> Iterator[Operation]:
        assert (env.task, env.tasks, env.vcpus) == (0, 1, 2)
        operations = [
            compute(100 * US), compute(50.4 * US, kernel=True), sleep(300 * US), yield_vcpu(), acquire("l"),
            compute(1 * US, kernel=True), release("l"), section("l", 7 * US), item_done(), answered(0),
        ]  # fmt: skip
        for operation in operations:
            times.append(env.now)
            yield operation
        times.append(env.now)

    overspin.register_workload(steps, locks=["l"])
    result = overspin.run(with_workload("steps", domain__guest__workload__threads=1), seed=1)
    assert result.ending == "finished"
    took = [later - earlier for earlier, later in zip(times, times[1:])]
    # Interrupts may lengthen an operation; nothing may shorten it.
    least = [100 * US, 50_400, 300 * US, 0, 0, US, 0, 7 * US, 0, 0]
    assert all(time >= least for time, least in zip(took, least)), took
    assert took[8:] == [0, 0]
    (task,) = [row for row in result.tasks if row["name"] == "steps0"]
    assert task["items"] == 2


def test_random_numbers_come_from_the_seed() -> None:
    drawn: list[tuple[int, float, int, int]] = []

    def draws(env: overspin.Env) -> Iterator[Operation]:
        drawn.append((env.task, env.random(), env.below(1000), env.exponential(MS)))
        yield compute(US)

    overspin.register_workload(draws)
    for seed in (1, 2, 1):
        overspin.run(with_workload("draws"), seed=seed)
    drawn = [*sorted(drawn[0:2]), *sorted(drawn[2:4]), *sorted(drawn[4:6])]
    assert drawn[0:2] == drawn[4:6], "equal seeds"
    assert len({row[1:] for row in drawn}) == 4, "two tasks with two seeds have four streams"
    assert all(0 <= random < 1 and 0 <= below < 1000 for _, random, below, _ in drawn)


@pytest.mark.parametrize(
    ("operation", "error", "words"),
    [
        (acquire("k"), ValueError, "the workload has no lock `k`; its locks are: l"),
        (compute(-1), ValueError, "a time is -1 ns"),
        (compute("10us"), TypeError, "'10us' is no time"),  # type: ignore[arg-type]
        (None, TypeError, "yielded None, which is no operation"),
        (("fly", 3), TypeError, "no operation"),
        ((), TypeError, "no operation"),
    ],
)
def test_a_wrong_operation_is_an_error(operation: object, error: type[Exception], words: str) -> None:
    overspin.register_workload(lambda env: [operation], name="wrong", locks=["l"])  # type: ignore[list-item]
    with pytest.raises(error, match=words):
        overspin.run(with_workload("wrong"), seed=1)


def test_an_exception_of_a_task_ends_the_run() -> None:
    def fails(env: overspin.Env) -> Iterator[Operation]:
        yield compute(US)
        if env.task == 1:
            raise ZeroDivisionError("in task 1")
        yield sleep(MS)

    overspin.register_workload(fails)
    with pytest.raises(ZeroDivisionError, match="in task 1") as caught:
        overspin.run(with_workload("fails"), seed=1)
    assert "fails" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_locks_is_a_list() -> None:
    with pytest.raises(TypeError, match="must be a list of names"):
        overspin.register_workload(lambda env: [], name="x", locks="abc")
    with pytest.raises(overspin.ScenarioError, match="threads"):
        with_workload("own-loop", domain__guest__workload__thread=3)


# Interrupts ---------------------------------------------------------------------------------------------------------


def endless(env: overspin.Env) -> Iterator[Operation]:
    while True:
        yield compute(US)


def stuck(env: overspin.Env) -> Iterator[Operation]:
    while True:
        pass
    yield compute(US)


@pytest.mark.parametrize("program", [endless, stuck])
def test_ctrl_c_ends_a_run(program: object) -> None:
    overspin.register_workload(program)  # type: ignore[call-overload]
    scenario = with_workload(program.__name__, limit="20h")  # type: ignore[attr-defined]
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        overspin.run(scenario, seed=1)
    timer.join()
    assert overspin.run(with_workload("own-loop"), seed=1).ending == "limit"


def test_max_wall_stops_a_run() -> None:
    overspin.register_workload(endless)
    began = time.monotonic()
    result = overspin.run(with_workload("endless", limit="20h"), seed=1, max_wall=0.2)
    assert result.ending == "stopped"
    assert time.monotonic() - began < 60
