"""Figures for papers: vector graphics, colours that everybody can tell apart, units on the axes. They need matplotlib."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overspin._overspin import MEASURES, interval
from overspin.errors import MissingPackage, UnknownName

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure as _Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import EngFormatter
except ImportError as missing:
    raise MissingPackage("figures need matplotlib", "install it: pip install matplotlib, or 'overspin[plot]'") from missing

if TYPE_CHECKING:
    from overspin.sweep_result import Sweep

__all__ = ["COLOURS", "STYLE", "WIDTH", "Figure", "Patch", "curves", "style"]

#: The colours of Okabe and Ito, as in the report page, the darkest first.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c94"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]

#: One column of a paper: 3.4 inches.
WIDTH = 3.4
STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    # Fonts that stay text, which publishers ask for.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # Equal figures give equal files.
    "svg.hashsalt": "overspin",
    "figure.dpi": 150,
}

#: What an axis says about a metric, where the title and the unit of the measure can be said better.
LABELS = {name: f"{title} ({unit})" for name, title, unit in MEASURES} | {
    "throughput": "Acquisitions per second",
    "wait-p50": "Median wait (µs)",
    "wait-p99": "99 % of waits are at most (µs)",
    "wait-p99.9": "99.9 % of waits are at most (µs)",
    "burned": "CPU time burned on waiting (%)",
    "fairness": "Fairness, Jain's index (%)",
}
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-zA-Zµ%]+)")


def style() -> Any:
    """Draws in the style of this package as long as the context lasts."""
    known: Any = STYLE
    return rc_context(known)


class Figure(_Figure):
    """A figure that a notebook shows as vector graphics. `savefig("name.pdf")` writes it."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As that of matplotlib, with fonts that stay text."""
        with style():
            super().savefig(*arguments, **options)

    def _repr_svg_(self) -> str:
        import io

        out = io.StringIO()
        self.savefig(out, format="svg")
        return out.getvalue()


def curves(sweep: Sweep, x: str | None, y: str, by: str | None, where: dict[str, object]) -> Figure:
    """See `Sweep.plot`."""
    axes = sweep.axes
    if not axes:
        raise ValueError("the sweep has no axis to draw along\n help: give `space` a key with several values")
    x = _first(sweep) if x is None else _known("axis", x, axes)
    by = None if by is None else _known("axis", by, axes)
    _known("metric", y, sweep.metrics)
    rows = _chosen(sweep, {x, by} - {None}, where)
    samples: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        group = "" if by is None else _text(row[by])
        samples.setdefault(group, {}).setdefault(_text(row[x]), []).append(row[y])
    if not samples:
        raise ValueError(f"no run has `{y}`\n help: `errors` says why runs did not come to their end")
    # The table is ordered by points, but a group may lack some of them.
    values = [value for value in axes[x] if any(value in group for group in samples.values())]
    at, unit = _numbers(values)
    with style():
        figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
        ax: Any = figure.subplots()
        for i, (name, of) in enumerate(samples.items()):
            shift = 0.0 if at else 0.12 * (i - (len(samples) - 1) / 2)
            points = [(at[v] if at else values.index(v) + shift, of[v]) for v in values if v in of]
            _curve(ax, i, name, points, bool(at))
        if not at:
            ax.set_xticks(range(len(values)), values, rotation=30 if sum(map(len, values)) > 40 else 0)
        ax.set_xlabel(f"{x} ({unit})" if unit else x)
        _vertical(ax, y)
        if by is not None:
            figure.legend(*ax.get_legend_handles_labels(), title=by, loc="outside right upper")
    return figure


def _curve(ax: Any, number: int, name: str, points: list[tuple[float, list[float]]], joined: bool) -> None:
    """Means with their intervals; a line joins numbers, but not names."""
    points = sorted(points)
    at, means, below, above = [], [], [], []
    for x, samples in points:
        found = interval(samples)
        if found is None:
            continue
        mean, low, high = found
        at.append(x)
        means.append(mean)
        below.append(mean - (mean if low is None else low))
        above.append((mean if high is None else high) - mean)
    ax.errorbar(
        at,
        means,
        yerr=[below, above],
        label=name,
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
        linestyle="-" if joined else "none",
        elinewidth=0.8,
        capsize=1.5,
    )


def _vertical(ax: Any, y: str) -> None:
    ax.set_ylabel(LABELS[y])
    lows = [value for line in ax.lines for value in line.get_ydata() if math.isfinite(value)]
    if y.startswith("wait") and lows and min(lows) > 0 and max(lows) > 50 * min(lows):
        ax.set_yscale("log")
        return
    ax.set_ylim(bottom=0)
    if y == "throughput":
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))


def _first(sweep: Sweep) -> str:
    """The first axis of numbers, or the first axis."""
    axes = sweep.axes
    return next((name for name, values in axes.items() if len(values) > 1 and _numbers(values)[0]), next(iter(axes)))


def _known(what: str, name: str, known: Any) -> str:
    if name not in known:
        plural = "axes" if what == "axis" else f"{what}s"
        raise UnknownName(f"the sweep has no {what} `{name}`", f"{plural} are: {', '.join(known)}")
    return name


def _chosen(sweep: Sweep, drawn: set[str | None], where: dict[str, object]) -> list[dict[str, Any]]:
    """The sound rows with the values of `where`; every other axis that is not drawn has one value."""
    axes = sweep.axes
    for name, value in where.items():
        _known("axis", name, axes)
        if _text(value) not in axes[name]:
            raise UnknownName(f"`{name}` has no value `{_text(value)}`", f"values are: {', '.join(axes[name])}")
    for name, values in axes.items():
        if name not in drawn and name not in where and len(values) > 1:
            raise ValueError(
                f"the sweep also varies `{name}`, and a mean over its values says nothing\n"
                f" help: choose one with where={{{name!r}: {values[0]!r}}}, or draw a curve for each with by={name!r}"
            )
    # A column of numbers has the numbers, an axis the words.
    texts = {name: _text(value) for name, value in where.items()}
    sound = (row for row in sweep.table if row["ending"] in ("finished", "limit"))
    return [row for row in sound if all(_text(row[name]) == value for name, value in texts.items())]


def _text(value: object) -> str:
    """A value of a column in the words of the axis."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _numbers(values: Sequence[str]) -> tuple[dict[str, float], str]:
    """The numbers of the values and their common unit; no numbers if they are names, or have several units."""
    try:
        return {value: float(value) for value in values}, ""
    except ValueError:
        found = [_QUANTITY.fullmatch(value) for value in values]
    units = {match[2] for match in found if match}
    if len(units) != 1 or not all(found):
        return {}, ""
    unit = units.pop()
    return {match[0]: float(match[1]) for match in found if match}, "µs" if unit == "us" else unit
