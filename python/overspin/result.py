"""Results: what was measured, as tables, as words and as pages."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Literal

from overspin._overspin import Record, Table
from overspin.errors import DeadlockError, NotInResult, TimelineCut, UnknownName
from overspin.run_plots import ResultPlots

#: Slices and marks of a timeline, unless another number is asked for.
MOST_SLICES = 1_000_000


class Result:
    """A result: of a run, of many runs, of an experiment. It never changes.

    It is the record that the command writes with `--json`, and reads: `save` and `load` share files with the command.
    Tables are made when they are asked for. Every time in them is in microseconds, and the name of its column ends with
    `_us`.
    """

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        self._record = record

    # Files ------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Reads a record, a directory that `--out` wrote, or a `.bench` file.

        Raises:
            ScenarioError: if it is none of these.
            OSError: if it cannot be read.
        """
        return cls(Record.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record as JSON. The file appears whole or not at all.

        Raises:
            OSError: if it cannot be written.
        """
        self._record.save(path)

    def to_json(self) -> str:
        """The record as JSON: the bytes that `overspin run --json` writes for the same scenario and seed."""
        return self._record.to_json()

    # Facts ------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What it is a result of: `run`, `seeds`, `sweep`, `reproduction`, ..."""
        return self._record.kind

    @property
    def name(self) -> str:
        """Name of the scenario or the experiment."""
        return self._record.name

    @property
    def seed(self) -> int | None:
        """The seed, if all runs have the same."""
        return self._record.seed

    @property
    def world(self) -> str:
        """The world of the runs: `sim`, `threads` or `hv`."""
        return self._record.world

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the figures."""
        return self._record.warnings

    @property
    def ending(self) -> Literal["finished", "limit", "deadlock", "stopped"]:
        """How the run ended. Only `finished` and `limit` are sound: other runs have no metrics.

        Raises:
            NotInResult: if this is not a single run. So do the properties below.
        """
        return self._record.ending

    @property
    def deadlock(self) -> list[str]:
        """What each waiter of a deadlock waits for; empty without a deadlock."""
        return self._record.deadlock

    def check(self) -> Result:
        """This result, if the run did not end in a deadlock.

        Raises:
            DeadlockError: if it did.
        """
        if self.ending == "deadlock":
            waits = "; ".join(self.deadlock)
            help = "nothing could ever happen again; `.result` of this exception is the result"
            raise DeadlockError(f"{self.name}: the run ended in a deadlock: {waits}", help, self)
        return self

    @property
    def elapsed_s(self) -> float:
        """Simulated seconds at the end of the run."""
        return self._record.elapsed_s

    @property
    def warmup_s(self) -> float:
        """The time of the run, in seconds, from which tables and metrics count."""
        return self._record.warmup_s

    @property
    def trace_hash(self) -> str:
        """A hash of all scheduling and lock events of the run: equal for equal runs."""
        return self._record.trace_hash

    # Tables -----------------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> Table:
        """Every sample, in long form: run, seed, where, metric, unit, value. `docs/metrics.md` defines them."""
        return self._record.metrics

    def metric(self, metric: str, where: str | None = None) -> float:
        """One number of `metrics`, in its unit.

        Args:
            metric: for example `elapsed` or `wait-p99`.
            where: the place, for example `guest`; it may be left out if only one place has the metric.

        Raises:
            UnknownName: if there is no such number, or there are several.
        """
        rows = [row for row in self.metrics if row["metric"] == metric]
        if not rows:
            known = ", ".join(dict.fromkeys(self.metrics["metric"])) or "none, because the run was not sound"
            raise UnknownName(f"the result has no metric `{metric}`", f"metrics are: {known}")
        found = [row for row in rows if where is None or row["where"] == where]
        if len(found) == 1:
            return float(found[0]["value"])
        places = ", ".join(dict.fromkeys(row["where"] for row in rows))
        if not found:
            raise UnknownName(f"`{metric}` was not measured in `{where}`", f"places are: {places}")
        raise UnknownName(
            f"`{metric}` has {len(found)} values",
            f"choose a place with `where`, or take them from the table `metrics`; places are: {places}",
        )

    @property
    def runs(self) -> Table:
        """Every run: its configuration, seed, ending, warm-up and trace hash. `unsteady` names domains whose rates still change."""
        return self._record.runs

    @property
    def locks(self) -> Table:
        """What happened at every lock of the run, and what its waits were spent on."""
        return self._record.locks

    @property
    def vcpus(self) -> Table:
        """Where the time of every vCPU of the run went."""
        return self._record.vcpus

    @property
    def pcpus(self) -> Table:
        """Where the time of every pCPU of the run went."""
        return self._record.pcpus

    @property
    def tasks(self) -> Table:
        """What every task of the run did."""
        return self._record.tasks

    @property
    def waits(self) -> Table:
        """The longest waits of the run, at most ten. `chain` has the parts of each, with the decisions that caused them."""
        return self._record.waits

    def slices(self, *, start_us: float = 0.0, limit: int = MOST_SLICES) -> Table:
        """What every vCPU did when: its runstates, its waits for locks and its holds. The run is made again for it.

        Args:
            start_us: leave out what ends before this time.
            limit: most slices and marks. If there are more, a `TimelineCut` warning says where the table ends.

        Raises:
            NotInResult: if this is not a single run, or its world cannot repeat it.
        """
        return self._timeline(start_us, limit)[0]

    def marks(self, *, start_us: float = 0.0, limit: int = MOST_SLICES) -> Table:
        """Kicks, notices, pause-loop exits and changes by the administrator. The run is made again for it.

        The arguments are those of `slices`.
        """
        return self._timeline(start_us, limit)[1]

    def _timeline(self, start_us: float, limit: int) -> tuple[Table, Table]:
        slices, marks, end_us = self._record.timeline(start_us, limit)
        if end_us is not None:
            warnings.warn(
                f"{limit} slices and marks end at {end_us:.0f} us, before the end of the run: raise `limit`, or "
                "choose a part with `start_us`",
                TimelineCut,
                stacklevel=3,
            )
        return slices, marks

    @property
    def figures(self) -> Table:
        """Published figures beside simulated ones; empty unless this is a reproduction."""
        return self._record.figures

    @property
    def claims(self) -> Table:
        """Published claims, and whether they hold here; empty unless this is a reproduction."""
        return self._record.claims

    # Words and pages --------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """What the run answers, in a few sentences, as `overspin run` prints it.

        Short runs beside it tell what it would do with a pCPU for each vCPU, and with other locks.

        Raises:
            NotInResult: if this is not a single run.
        """
        return self._record.summary()

    def report(self, *, markdown: bool = False) -> str:
        """All tables of the run, as `overspin run --verbose` prints them.

        Raises:
            NotInResult: if this is not a single run.
        """
        return self._record.text(False, markdown)

    def explain(self, *, markdown: bool = False) -> str:
        """What waits were spent on and why, as `overspin explain` tells. A run is made again for its longest wait."""
        return self._record.text(True, markdown)

    def html(self, path: str | os.PathLike[str] | None = None, *, slices: int | None = MOST_SLICES) -> str:
        """The report page, as `overspin report` writes it: one HTML file that needs no network.

        Args:
            path: also write it to this file.
            slices: most slices and marks of its timeline; `None` leaves the timeline out, and makes no run.
        """
        html = self._record.html(slices)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    @property
    def plot(self) -> ResultPlots:
        """Figures of a single run: `plot.waits()` and `plot.timeline()`. They need matplotlib."""
        return ResultPlots(self)

    def _repr_html_(self) -> str:
        return self._record.fragment()

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        try:
            how = f", {self.ending} after {self.elapsed_s:g} s"
        except NotInResult:
            how = f", {len(self.runs)} runs"
        return f"<overspin.Result: {self.kind} of {self.name}{seed}{how}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._record == other._record

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _from_json, (self.to_json(),)


def _from_json(text: str) -> Result:
    """Makes an unpickled result."""
    return Result(Record.from_json(text))
