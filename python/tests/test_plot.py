"""Figures: what they show, how they are written, and what is said without matplotlib."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL

import overspin
from overspin import Result, Scenario, Sweep

pytestmark = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="skipped: no package matplotlib")


@pytest.fixture(scope="module")
def swept() -> Sweep:
    space = {"domain.guest.lock": ["ticket", "mcs"], "domain.guest.vcpus": [2, 4, 8], "limit": ["2ms", "4ms"]}
    return overspin.sweep(Scenario.from_toml(SMALL), space, seeds=3)


def test_curves_are_means_over_seeds(swept: Sweep) -> None:
    figure = swept.plot("vcpus", "throughput", by="lock", where={"limit": "4ms"})
    axes: Any
    (axes,) = figure.axes
    assert axes.get_xlabel() == "vcpus" and axes.get_ylabel() == "Acquisitions per second"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ticket", "mcs"]
    line = axes.containers[0].lines[0]
    assert list(line.get_xdata()) == [2, 4, 8]
    for vcpus, drawn in zip([2, 4, 8], line.get_ydata(), strict=True):
        samples = [row["throughput"] for row in swept if (row["lock"], row["vcpus"], row["limit"]) == ("ticket", vcpus, "4ms")]
        assert len(samples) == 3 and drawn == pytest.approx(sum(samples) / 3)
    assert line.get_color() != axes.containers[1].lines[0].get_color()


def test_axes_have_units_and_names_are_not_joined(swept: Sweep) -> None:
    axes: Any
    (axes,) = swept.plot("limit", "wait-p99", where={"lock": "mcs", "vcpus": 4}).axes
    assert axes.get_xlabel() == "limit (ms)" and axes.get_ylabel().endswith("(µs)")
    (axes,) = swept.plot("lock", "fairness", where={"limit": "4ms", "vcpus": 4}).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["ticket", "mcs"]
    assert axes.containers[0].lines[0].get_linestyle() == "None"
    # The first axis of numbers is the horizontal one.
    (axes,) = swept.plot(y="burned", by="lock", where={"limit": "2ms"}).axes
    assert axes.get_xlabel() == "vcpus"


def test_figures_are_vector_graphics(swept: Sweep, overcommitted: Result, tmp_path: Path) -> None:
    figures: dict[str, Any] = {
        "curves": swept.plot("vcpus", by="lock", where={"limit": "4ms"}),
        "waits": overcommitted.plot.waits(),
        "timeline": overcommitted.plot.timeline(end_us=60_000),
    }
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.svg")
        figure.savefig(tmp_path / f"{name}.pdf")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text() and "<image" not in figure._repr_svg_()
        # Type 3 fonts are what publishers refuse.
        assert b"/Type3" not in (tmp_path / f"{name}.pdf").read_bytes()


def test_waits_add_up(overcommitted: Result) -> None:
    left: Any
    right: Any
    left, right = overcommitted.plot.waits().axes
    assert left.get_xlabel() == "Wait (µs)" and right.get_xlabel() == "Share of the waiting time (%)"
    # Parts too small to be seen are left out.
    assert sum(bar.get_width() for bar in right.patches) == pytest.approx(100, abs=0.3)
    with pytest.raises(overspin.NotInResult, match="no lock was waited for"):
        overspin.run(Scenario.from_toml(SMALL.replace("vcpus = 2", "vcpus = 1"))).plot.waits()


def test_a_timeline_has_a_lane_for_each_vcpu(overcommitted: Result) -> None:
    (axes,) = overcommitted.plot.timeline(start_us=10_000, end_us=50_000).axes
    lanes = {row["vcpu"] for row in overcommitted.slices() if row["end_us"] > 10_000 and row["start_us"] < 50_000}
    assert {f"guest/v{i}" for i in range(4)} <= lanes
    assert {text.get_text() for text in axes.get_yticklabels()} == lanes and len(axes.get_yticklabels()) == len(lanes)
    assert axes.get_xlim() == (10, 50) and axes.get_xlabel() == "Simulated time (ms)"
    with pytest.raises(ValueError, match="not after `start_us`"):
        overcommitted.plot.timeline(start_us=5, end_us=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "vcpu"}, "no axis `vcpu`\n help: axes are: lock, vcpus, limit"),
        ({"y": "speed"}, "no metric `speed`\n help: metrics are: throughput"),
        ({"x": "vcpus"}, "also varies `lock`.*\n help: choose one with where=.'lock': 'ticket'."),
        ({"x": "vcpus", "by": "lock", "where": {"limit": "5ms"}}, "`limit` has no value `5ms`\n help: values are: 2ms, 4ms"),
    ],
)
def test_misuse_is_named(swept: Sweep, options: dict[str, Any], message: str) -> None:
    with pytest.raises((overspin.UnknownName, ValueError), match=message):
        swept.plot(**options)


def test_without_matplotlib_the_remedy_is_named(swept: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "overspin.plots", raising=False)
    # `from overspin import plots` would find the attribute.
    monkeypatch.delattr(overspin, "plots", raising=False)
    there = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError("no matplotlib")
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(overspin.MissingPackage, match="pip install matplotlib"):
        swept.plot("vcpus", by="lock", where={"limit": "2ms"})
