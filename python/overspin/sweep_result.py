"""The result of a sweep: a table with a row for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overspin._overspin import MEASURES, Table
from overspin.parts import Store
from overspin.space import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is measured of each run.
METRICS = tuple(name for name, _, _ in MEASURES)


class Sweep:
    """A sweep: a row for each run, with its values on the axes, its seed, its metrics, and how it ended.

    It exports Arrow's C interface, so `polars.DataFrame(sweep)`, `pyarrow.table(sweep)` and DuckDB read it in place. Rows are
    in the order of the seeds, and for each seed in the order of the points.
    """

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan = plan
        self._store = store
        made = sum(stop - start for start, stop in store.made())
        #: Runs that are not there because the sweep was interrupted or failed.
        self.missing = len(plan) - made
        #: The file or the directory with the rows, if there is one.
        self.path: Path | None = store.path

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._plan.name

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The axes, each with its values in words. Each is a column of the table."""
        return dict(self._plan.axes)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The columns that were measured: those of `overspin sweep`, in the same units."""
        return METRICS

    @cached_property
    def table(self) -> Table:
        """All rows. With `out`, they are read from there now."""
        if self.missing == len(self._plan):
            # No run was made, but the table has its columns.
            return self._plan.template.run(0, [], [], self._plan.columns)[0]
        return self._store.table()

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The rows of runs that did not come to their end. They have no metrics; `error` says why."""
        return [row for row in self.table if row["error"] is not None]

    def __len__(self) -> int:
        return len(self._plan) - self.missing

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table)

    def __getitem__(self, name: str, /) -> list[Any]:
        return self.table[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sweep) and self.table == other.table

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_schema__(self) -> object:
        return self.table.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pyarrow(self) -> Any:
        """As a `pyarrow.Table`."""
        return self.table.to_pyarrow()

    def to_polars(self) -> Any:
        """As a `polars.DataFrame`."""
        return self.table.to_polars()

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`."""
        return self.table.to_pandas()

    def plot(
        self,
        x: str | None = None,
        y: str = "throughput",
        *,
        by: str | None = None,
        where: Mapping[str, object] | None = None,
    ) -> Figure:
        """A figure of one metric along an axis: means over the seeds, with 95 % intervals. It needs matplotlib.

        Args:
            x: the axis along the horizontal; without it, the first axis of numbers, or the first axis.
            y: the metric.
            by: another axis; each of its values is a curve.
            where: one value for each axis that is neither `x` nor `by`, where these have several.

        Raises:
            UnknownName: if there is no such axis, metric or value.
            ValueError: if an axis with several values is neither chosen nor drawn.
            MissingPackage: without matplotlib.
        """
        from overspin.plots import curves

        return curves(self, x, y, by, dict(where or {}))

    def __repr__(self) -> str:
        axes = " and ".join(f"{name} ({len(values)})" for name, values in self.axes.items())
        along = f" along {axes}" if axes else ""
        missing = f", {self.missing} missing" if self.missing else ""
        return f"<overspin.Sweep: {self.name}{along}, {len(self)} runs{missing}>"

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
