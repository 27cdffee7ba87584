"""Sweeps: many runs, on all cores or in a cluster, as one table."""

from __future__ import annotations

import os
import queue
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor
from typing import Any

from overspin import parts
from overspin._overspin import Scenario
from overspin.batches import Gaps, Sizes, key
from overspin.errors import Error, SweepError, SweepInterrupted
from overspin.executors import AHEAD, CANCELLED, Crew, Dask, crew
from overspin.space import Plan, Space, plan
from overspin.sweep_result import Sweep

#: Seconds without a result after which an empty cluster is named.
QUIET = 20.0


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    space: Space | None = None,
    seeds: int | Iterable[int] | None = None,
    *,
    executor: Any = None,
    out: str | os.PathLike[str] | None = None,
    threads: int = 0,
    batch_seconds: float = 1.0,
    in_flight: int | None = None,
    retries: int = 3,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Runs a scenario at every point of a space, with every seed, and measures each run as `overspin sweep` does.

    The result is a table with a row for each run. It is equal, to the digit, wherever the runs are made.

    Args:
        scenario: a scenario, or the path of its file. Its own axes come first.
        space: keys as of `Scenario.set`, each with a list of values: every combination is a point. Or a list of mappings
            from keys to values: each is a point.
        seeds: the number of seeds, from the scenario's own on; or the seeds. Without it, those of the scenario.
        executor: where runs are made: an executor of `concurrent.futures`, or a Dask `Client`. Without one, on all cores.
        out: a `.parquet` file or a directory for the rows as they come. The same call again makes what is missing.
        threads: without an executor, the number of runs at a time; 0 is one for each CPU.
        batch_seconds: runs are sent to workers in batches that take about so long.
        in_flight: most batches that are under way; without it, four for each worker.
        retries: how often a batch whose task failed is tried again. (A run that fails is a row, and no failure.)
        progress: called with the runs made and the runs in all, after each batch.

    Raises:
        ScenarioError: if a scenario, a key or a value is at fault. No run is made then.
        SweepError: if batches cannot be made; `.sweep` of it has the runs that were made.
        SweepInterrupted: at Ctrl-C; a `KeyboardInterrupt` whose `.sweep` has the runs that were made.
        RunError: if `out` holds another result.
        OSError: if `out` cannot be written.
    """
    if not batch_seconds > 0:
        raise ValueError(f"`batch_seconds` is {batch_seconds}\n help: give seconds, for example 1.0")
    if in_flight is not None and in_flight < 1:
        raise ValueError(f"`in_flight` is {in_flight}\n help: give 1 or more")
    hands = crew(executor, threads, retries)
    try:
        todo = plan(scenario, space, seeds)
        store = parts.store(out, todo)
    except BaseException:
        hands.close()
        raise
    work = _Work(todo, store, hands, Sizes(batch_seconds), in_flight, retries, progress)
    try:
        work.all()
        store.finish()
    except KeyboardInterrupt as cause:
        work.give_up()
        came = Sweep(todo, store)
        raise SweepInterrupted(f"interrupted: {came.missing} of {len(todo)} runs are missing{_again(out)}", came) from cause
    except SweepError as cause:
        work.give_up()
        cause.sweep = Sweep(todo, store)
        raise
    except BaseException:
        work.give_up()
        raise
    finally:
        hands.close()
        store.close()
    return Sweep(todo, store)


def _again(out: object) -> str:
    return "" if out is None else "; the same call makes them"


class _Work:
    """The batches of a sweep that are under way."""

    def __init__(
        self,
        todo: Plan,
        store: parts.Store,
        hands: Crew,
        sizes: Sizes,
        in_flight: int | None,
        retries: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self.plan, self.store, self.hands, self.sizes = todo, store, hands, sizes
        self.in_flight, self.retries, self.progress = in_flight, retries, progress
        self.gaps = Gaps(len(todo), store.made())
        self.made = len(todo) - self.gaps.left
        #: Futures under way, each with its runs and the number of tries before.
        self.under_way: dict[Any, tuple[int, int, int]] = {}
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self, start: int, stop: int, tries: int = 0) -> None:
        name = key(self.plan, start, stop)
        batch = self.plan.batch(start, stop)
        try:
            future = self.hands.submit(batch, f"{name}-{tries}" if tries else name)
        except Exception as error:
            # The executor has broken, or is being shut down, since the last batch ended.
            raise self.failed(error, tries) from error
        self.under_way[future] = (start, stop, tries)
        future.add_done_callback(self.ended.put)

    def all(self) -> None:
        """Makes all runs that are missing."""
        while self.gaps.left or self.under_way:
            workers = self.hands.workers()
            most = self.in_flight or AHEAD * workers
            while self.gaps.left and len(self.under_way) < most:
                self.submit(*self.gaps.take(self.sizes.next(self.gaps.left, workers)))
            self.take(self.next())

    def next(self) -> Any:
        """The next future that has ended."""
        while True:
            try:
                return self.ended.get(timeout=QUIET)
            except queue.Empty:
                if isinstance(self.hands, Dask) and self.hands.is_empty():
                    warnings.warn("the Dask cluster has no workers: the sweep waits for some", RuntimeWarning, stacklevel=4)

    def take(self, future: Any) -> None:
        """Keeps the rows of a batch, or tries it again."""
        start, stop, tries = self.under_way.pop(future)
        try:
            table, seconds = future.result()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not self.hands.again(error) or tries >= self.retries:
                raise self.failed(error, tries) from error
            self.submit(start, stop, tries + 1)
            return
        self.store.add(start, table)
        self.sizes.learn(len(table), seconds)
        self.made += len(table)
        if self.progress is not None:
            self.progress(self.made, len(self.plan))

    def failed(self, error: BaseException, tries: int) -> SweepError:
        left = len(self.plan) - self.made
        cause = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        if isinstance(error, BrokenExecutor):
            remedy = "a process of the executor was killed, perhaps for want of memory: make another executor"
        elif isinstance(error, CANCELLED):
            remedy = "give an executor that is not being shut down"
        elif isinstance(error, Error):
            remedy = error.help
        elif isinstance(error, ImportError):
            remedy = "install overspin, of the same version, for every worker"
        else:
            remedy = "see the exception that caused this one"
        times = f" {tries + 1} times" if tries else ""
        message = f"a batch failed{times}: {cause}; {self.made} of {len(self.plan)} runs were made, {left} are missing"
        return SweepError(message, f"{remedy}. With `out`, the same call makes the missing runs")

    def give_up(self) -> None:
        """Keeps what has ended or can be ended at once, and begins nothing more."""
        for future in list(self.under_way):
            future.cancel()
        self.hands.stop()
        self.hands.close()
        while True:
            try:
                future = self.ended.get_nowait()
                start, _, _ = self.under_way.pop(future)
                table, _ = future.result(timeout=QUIET)
            except queue.Empty:
                return
            except (Exception, *CANCELLED):
                # It was cancelled, or has failed: its runs are missing.
                continue
            if len(table):
                self.store.add(start, table)
                self.made += len(table)
