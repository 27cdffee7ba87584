"""How many runs a batch has: as many as take about a second, learned from the batches before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from overspin.space import Plan


class Sizes:
    """The size of the next batch. It begins with one run and at most doubles, so that the first batches, of which
    nothing is known, are not too long. Sizes are powers of two: a sweep that is begun again has many of the same
    batches.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.largest = 0
        self.each: float | None = None

    def learn(self, runs: int, seconds: float) -> None:
        """A batch of so many runs took so long."""
        self.largest = max(self.largest, runs)
        # Recent batches count most: the first runs of a process are slow.
        each = seconds / max(runs, 1)
        self.each = each if self.each is None else 0.5 * (self.each + each)

    def next(self, left: int, workers: int) -> int:
        """At most `left` runs are to be made by so many workers. The last batches are small, so that all workers end
        at about the same time."""
        if self.each is None:
            return 1
        fits = self.seconds / max(self.each, 1e-9)
        most = int(min(fits, 2.0 * self.largest, max(1, left // (2 * workers)), left))
        return 1 << (max(most, 1).bit_length() - 1)


class Gaps:
    """Numbers of runs that are still to be made."""

    def __init__(self, total: int, made: Iterable[tuple[int, int]]) -> None:
        self._gaps: list[tuple[int, int]] = []
        at = 0
        for start, stop in sorted(made):
            if start > at:
                self._gaps.append((at, start))
            at = max(at, stop)
        if at < total:
            self._gaps.append((at, total))
        self._gaps.reverse()
        self.left = sum(stop - start for start, stop in self._gaps)

    def take(self, most: int) -> tuple[int, int]:
        """The next ones, at most so many, without a gap between them."""
        start, stop = self._gaps.pop()
        if stop - start > most:
            self._gaps.append((start + most, stop))
            stop = start + most
        self.left -= stop - start
        return start, stop


def key(plan: Plan, start: int, stop: int) -> str:
    """A name for these runs: equal names stand for equal results."""
    count = len(plan.points)
    seeds = plan.seeds[start // count : (stop - 1) // count + 1]
    # The columns of a table have the names and the values of axes in words.
    text = f"{plan.digest} {start % count} {stop - start} {list(seeds)} {start} {plan.axes}"
    return "overspin-batch-" + hashlib.sha256(text.encode()).hexdigest()[:32]
