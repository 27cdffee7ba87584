"""Where batches are made: in threads of this process, in any executor, in a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from typing import Any

from overspin._overspin import Stop
from overspin.space import Batch, work

#: Batches that wait for each worker, so that it never waits for the next one.
AHEAD = 4
#: What a future that was cancelled raises.
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
#: Seconds for which the number of a cluster's workers is taken to be the same.
ASK_AGAIN = 1.0


class Crew:
    """Those who make batches. A future of them has `result`, `cancel` and `add_done_callback`."""

    def workers(self) -> int:
        """Batches that are made at the same time."""
        raise NotImplementedError

    def submit(self, batch: Batch, key: str) -> Any:
        """Begins a batch."""
        raise NotImplementedError

    def again(self, error: BaseException) -> bool:
        """Whether a batch whose task raised this is worth another try."""
        return not isinstance(error, (BrokenExecutor, *CANCELLED))

    def stop(self) -> None:
        """Ends running batches early where that is possible; what they have made so far is their result."""

    def close(self) -> None:
        """Waits for running batches where this package began them."""


class Futures(Crew):
    """Any executor with `submit`, as in `concurrent.futures`."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        # Threads share memory, and can be told to stop.
        self.signal = Stop() if isinstance(executor, ThreadPoolExecutor) else None

    def workers(self) -> int:
        count = getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
        return max(1, int(count))

    def submit(self, batch: Batch, key: str) -> Any:
        if self.signal is not None:
            return self.executor.submit(work, batch, self.signal)
        return self.executor.submit(work, batch)

    def stop(self) -> None:
        if self.signal is not None:
            self.signal.set()


class Threads(Futures):
    """Threads of this process, one for each CPU: a run does not hold Python's lock."""

    def __init__(self, threads: int) -> None:
        count = threads or len(os.sched_getaffinity(0))
        super().__init__(ThreadPoolExecutor(count, thread_name_prefix="overspin"))

    def close(self) -> None:
        self.executor.shutdown(wait=True, cancel_futures=True)


class Dask(Crew):
    """A client of Dask. The scheduler makes a lost batch again elsewhere, and tries a failed one again."""

    def __init__(self, client: Any, retries: int) -> None:
        self.client = client
        self.retries = retries
        self._asked = float("-inf")
        self._workers = 0

    def workers(self) -> int:
        if time.monotonic() - self._asked > ASK_AGAIN:
            self._workers = sum(self.client.nthreads().values())
            self._asked = time.monotonic()
        return max(1, self._workers)

    def is_empty(self) -> bool:
        """Whether the cluster has no workers now."""
        self.workers()
        return self._workers == 0

    def submit(self, batch: Batch, key: str) -> Any:
        return self.client.submit(work, batch, key=key, retries=self.retries)

    def again(self, error: BaseException) -> bool:
        # The scheduler has tried all else again. This one says that several workers died with the batch, as they do
        # where machines are taken away.
        return type(error).__name__ == "KilledWorker"


def crew(executor: Any, threads: int, retries: int) -> Crew:
    """Those who make the batches of a sweep.

    Raises:
        TypeError: if `executor` is none.
    """
    if threads < 0:
        raise ValueError(f"`threads` is {threads}\n help: give 1 or more; 0 is one for each CPU")
    if executor is None:
        return Threads(threads)
    if threads:
        raise ValueError("`threads` is for sweeps without an executor\n help: give the executor its number of workers")
    if hasattr(executor, "nthreads") and hasattr(executor, "submit"):
        if getattr(executor, "asynchronous", False):
            raise TypeError("the Dask client is asynchronous\n help: make it with Client(asynchronous=False)")
        return Dask(executor, retries)
    if callable(getattr(executor, "submit", None)) and not isinstance(executor, type):
        return Futures(executor)
    raise TypeError(
        f"`executor` is of type {type(executor).__name__}\n"
        " help: give an executor of concurrent.futures, or a Dask Client; without one, all cores of this machine are used"
    )
