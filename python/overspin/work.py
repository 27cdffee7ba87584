"""Runs, reproductions and comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from overspin import _overspin
from overspin._overspin import Comparison, Scenario
from overspin.result import Result


def run(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None = None,
    *,
    world: str | None = None,
    max_wall: float | None = None,
    strict: bool = False,
) -> Result:
    """Runs a scenario once, without Python's lock: threads run at the same time. Ctrl-C ends the run.

    Equal scenarios and seeds give equal results, to the byte, on every machine and in every process.

    Args:
        scenario: a scenario, or the path of its file.
        seed: the seed; without one, that of the scenario.
        world: `sim` (the simulator), `threads` or `hv`; without one, that of the scenario's record, or the simulator.
        max_wall: seconds of real time after which the run is stopped. Its result then says `ending == "stopped"`.
        strict: raise `DeadlockError` if the run ends in a deadlock.

    Raises:
        ScenarioError: if the scenario is a sweep, or its file is at fault.
        RunError: if the world cannot run the scenario.
        UnknownName: if there is no such world.
        DeadlockError: with `strict`.
        KeyboardInterrupt: at Ctrl-C, within 0.2 seconds. (In a thread other than the main one Python delivers no
            signals; use `max_wall` there.)
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_file(scenario)
    result = Result(_overspin.run(scenario, seed, world, max_wall))
    return result.check() if strict else result


def reproduce(
    experiment: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    full: bool = False,
    threads: int = 0,
) -> Result:
    """Runs a published experiment, and puts the simulated figures beside the published ones.

    The result has `figures` and `claims`, and every sample in `metrics`. Ctrl-C ends it.

    Args:
        experiment: a name of `experiments()`, or the path of a changed copy of such a file.
        seeds: runs of each configuration; without it, the experiment's own number.
        full: run the published length instead of a part of it.
        threads: runs at a time; 0 is one for each CPU.

    Raises:
        UnknownName: if there is no such experiment.
        ScenarioError: if the file is at fault.
        RunError: if the simulator refuses a scenario.
    """
    return Result(_overspin.reproduce(os.fspath(experiment), seeds, full, threads))


def compare(
    a: Result,
    b: Result,
    *,
    confidence: float = 0.95,
    better: Literal["lower", "higher"] | None = None,
    metrics: Sequence[str] = (),
    where: Sequence[str] = (),
    names: tuple[str, str] = ("a", "b"),
) -> Comparison:
    """Whether the second result differs from the first, and how certain that is, as `overspin compare` tells.

    Args:
        a: the first result.
        b: the second result.
        confidence: of the intervals and the tests, between 0 and 1.
        better: which direction is good; it turns `different` into `improved` or `regressed`.
        metrics: compare these instead of the main metrics.
        where: compare only these places.
        names: how the report calls the two.

    Raises:
        NotInResult: if the two have no measurement in common.
        UnknownName: if a result has none of the metrics or places.
    """
    return _overspin.compare(
        (names[0], a._record), (names[1], b._record), confidence, better, list(metrics), list(where)
    )
