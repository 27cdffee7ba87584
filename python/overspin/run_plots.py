"""Figures of a single run: what its waits were, and what each vCPU did when."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from overspin.errors import NotInResult, TimelineCut

if TYPE_CHECKING:
    from overspin.plots import Figure
    from overspin.result import Result

#: Causes of waits: column, words and colour, as in the report page.
CAUSES = [
    ("cause_holder_running_us", "holder running", "#0072b2"),
    ("cause_holder_preempted_us", "holder preempted", "#d55e00"),
    ("cause_next_preempted_us", "next waiter preempted", "#f0e442"),
    ("cause_kick_wake_us", "kick and wake-up", "#56b4e9"),
    ("cause_own_preemption_us", "own preemption", "#e69f00"),
    ("cause_line_transfer_us", "line transfer", "#cc79a7"),
    ("cause_holder_preempted_by_guest_us", "holder preempted by its guest", "#009e73"),
    ("cause_next_preempted_by_guest_us", "next waiter preempted by its guest", "#63636b"),
    ("cause_holder_throttled_us", "holder throttled", "#000000"),
    ("cause_next_throttled_us", "next waiter throttled", "#a0522d"),
]
#: What a vCPU does: words and colour. The lower band of a lane has what it does with locks.
STATES = {"running": ("running", "#009e73"), "runnable": ("wants a pCPU", "#f0e442"), "blocked": ("blocked", "#b8d8ec")}
LOCKS = {"waits": ("waits for a lock", "#e69f00"), "still-waits": ("waits for a lock", "#e69f00"), "holds": ("holds a lock", "#0072b2")}
#: Percentiles of waits: column, words and marker.
PERCENTILES = [("wait_p50_us", "50 %", "o"), ("wait_p99_us", "99 %", "s"), ("wait_p999_us", "99.9 %", "^"), ("wait_max_us", "longest", "D")]


class ResultPlots:
    """Figures of a result. They need matplotlib, and are its figures: `savefig("name.pdf")` writes one."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def waits(self) -> Figure:
        """How long the waits for each lock were, and what they were spent on.

        Raises:
            NotInResult: if this is not a single run, or no lock was waited for.
            MissingPackage: without matplotlib.
        """
        from overspin import plots

        locks = [lock for lock in self._result.locks if lock["contended"] and lock["wait_total_us"] > 0]
        if not locks:
            raise NotInResult("no lock was waited for", "choose a scenario with a contended lock")
        # The locks with the most waiting, the most important one at the top.
        locks = sorted(locks, key=lambda lock: -float(lock["wait_total_us"]))[:12][::-1]
        names = [f"{lock['domain']}: {lock['name']}" for lock in locks]
        with plots.style():
            figure = plots.Figure(figsize=(2 * plots.WIDTH, 1.25 + 0.22 * len(locks)), layout="constrained")
            axes: Any = figure.subplots(1, 2, sharey=True)
            left, right = axes
            for (column, words, marker), colour in zip(PERCENTILES, plots.COLOURS, strict=False):
                at = [(lock[column], i) for i, lock in enumerate(locks) if lock[column] > 0]
                # A logarithmic axis has no place for waits of no length.
                if at:
                    left.plot([x for x, _ in at], [y for _, y in at], marker, color=colour, label=words)
            left.set_xscale("log")
            left.set_xlabel("Wait (µs)")
            left.set_yticks(range(len(locks)), names)
            left.set_ylim(-0.6, len(locks) - 0.4)
            before = [0.0] * len(locks)
            for column, words, colour in CAUSES:
                parts = [100 * lock[column] / lock["wait_total_us"] for lock in locks]
                if max(parts) >= 0.05:
                    right.barh(range(len(locks)), parts, left=before, height=0.6, color=colour, label=words)
                before = [a + b for a, b in zip(before, parts, strict=True)]
            right.set_xlabel("Share of the waiting time (%)")
            right.set_xlim(0, 100)
            right.tick_params(left=False)
            for ax in (left, right):
                ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2 if ax is right else 4, columnspacing=1.0, handletextpad=0.4)
        return figure

    def timeline(self, *, start_us: float = 0.0, end_us: float | None = None, limit: int = 5000) -> Figure:
        """What each vCPU did when: above its runstate, below what it did with locks. The run is made again for it.

        Args:
            start_us: the beginning of what is drawn.
            end_us: its end; without it, the end of the run.
            limit: most slices. If there are more, the figure ends earlier.

        Raises:
            NotInResult: if this is not a single run, or its world cannot repeat it.
            ValueError: if nothing is drawn.
            MissingPackage: without matplotlib.
        """
        from overspin import plots

        if end_us is not None and end_us <= start_us:
            raise ValueError(f"`end_us` is {end_us}, not after `start_us`, {start_us}")
        with warnings.catch_warnings():
            # The axis shows where the figure ends.
            warnings.simplefilter("ignore", TimelineCut)
            rows = self._result.slices(start_us=start_us, limit=limit).to_dicts()
        last = max((row["end_us"] for row in rows), default=start_us)
        end = last if end_us is None else min(end_us, last)
        rows = [row for row in rows if row["end_us"] > start_us and row["start_us"] < end]
        if not rows:
            raise ValueError(f"nothing happens after {start_us} us\n help: the run ends at {self._result.elapsed_s * 1e6:g} us")
        names = list(dict.fromkeys(row["vcpu"] for row in rows))
        scale, unit = (1e-3, "ms") if end - start_us >= 5000 else (1.0, "µs")
        drawn: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for row in rows:
            begin = max(row["start_us"], start_us)
            span = (begin * scale, (min(row["end_us"], end) - begin) * scale)
            drawn.setdefault((row["vcpu"], row["doing"]), []).append(span)
        with plots.style():
            figure = plots.Figure(figsize=(2 * plots.WIDTH, 0.8 + 0.28 * len(names)), layout="constrained")
            ax: Any = figure.subplots()
            for (vcpu, doing), spans in drawn.items():
                lane = len(names) - 1 - names.index(vcpu)
                _, colour = (STATES | LOCKS)[doing]
                place = (lane, 0.36) if doing in STATES else (lane - 0.36, 0.36)
                ax.broken_barh(spans, place, facecolors=colour, linewidth=0)
            ax.set_yticks(range(len(names)), names[::-1])
            ax.set_ylim(-0.5, len(names) - 0.5)
            ax.set_xlim(start_us * scale, end * scale)
            ax.set_xlabel(f"Simulated time ({unit})")
            ax.tick_params(left=False)
            ax.spines["left"].set_visible(False)
            there = {doing for _, doing in drawn}
            # Both kinds of waits have one entry.
            styles = {words: colour for doing, (words, colour) in (STATES | LOCKS).items() if doing in there}
            handles: list[Any] = [plots.Patch(color=colour, label=words) for words, colour in styles.items()]
            figure.legend(handles=handles, loc="outside upper center", ncols=6, columnspacing=1.0, handlelength=1.0)
        return figure
