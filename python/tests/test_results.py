"""Results: files, words, pages, experiments, comparisons, lists."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from conftest import ROOT

import overspin
from overspin import NotInResult, Result, Scenario


def test_a_result_is_saved_and_loaded(overcommitted: Result, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    overcommitted.save(path)
    assert Result.load(path) == overcommitted == pickle.loads(pickle.dumps(overcommitted))
    with pytest.raises(FileNotFoundError):
        overcommitted.save(tmp_path / "no/such/r.json")
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
    path.write_text("{")
    with pytest.raises(overspin.ScenarioError) as raised:
        Result.load(path)
    assert raised.value.file == str(path)


def test_a_record_can_be_run_again(overcommitted: Result, tmp_path: Path) -> None:
    overcommitted.save(tmp_path / "r.json")
    assert overspin.run(Scenario.from_file(tmp_path / "r.json")).trace_hash == overcommitted.trace_hash


def test_one_number_is_found_or_the_choice_is_named(overcommitted: Result) -> None:
    assert overcommitted.metric("busy") == overcommitted.metric("busy", "host")
    with pytest.raises(overspin.UnknownName, match="choose a place with `where`"):
        overcommitted.metric("wait-p99")
    with pytest.raises(overspin.UnknownName, match="metrics are: busy"):
        overcommitted.metric("bussy")
    with pytest.raises(overspin.UnknownName, match="places are: host"):
        overcommitted.metric("busy", "guest")


def test_words(overcommitted: Result) -> None:
    assert "next waiter preempted (LWP)" in overcommitted.explain()
    assert overcommitted.explain(markdown=True).startswith("# ticket-overcommit")
    assert "trace hash " + overcommitted.trace_hash in " ".join(overcommitted.report().split())
    # The figure of the answer is that of the table.
    rate = overcommitted.metric("items", "guest")
    assert f"lock of `guest` was taken {rate:.3g} times a second. With a pCPU" in " ".join(overcommitted.summary().split())
    assert repr(overcommitted) == "<overspin.Result: run of ticket-overcommit, seed 1, limit after 3 s>"


def test_pages(overcommitted: Result, tmp_path: Path) -> None:
    page = overcommitted.html(tmp_path / "r.html", slices=1000)
    assert page.startswith("<!DOCTYPE html>") and (tmp_path / "r.html").read_text(encoding="utf-8") == page
    assert 'id="timeline-0"' in page and 'id="timeline-0"' not in overcommitted.html(slices=None)
    assert "<svg" in overcommitted._repr_html_() and "<script" not in overcommitted._repr_html_()


def test_a_result_of_an_experiment() -> None:
    result = overspin.reproduce(ROOT / "experiments/2016-schedbench.toml", seeds=1)
    assert result.kind == "reproduction" and len(result.claims) == 6
    assert set(result.figures["grade"]) <= {"good", "fair", "missed"}
    assert all(holds in (True, False, None) for holds in result.claims["holds"])
    with pytest.raises(NotInResult, match="a result of a single run has this; this one is of a reproduction"):
        _ = result.locks
    assert "<svg" not in result._repr_html_() and "holds" in result._repr_html_()
    assert "runs" in repr(result) and result.explain()


def test_names_of_experiments() -> None:
    assert "2008-spinlocks" in overspin.experiments()["name"]
    with pytest.raises(overspin.UnknownName, match="did you mean `2008-spinlocks`"):
        overspin.reproduce("2008-spinlock")


def test_two_results_are_compared(overcommitted: Result, small: Scenario) -> None:
    scenario = Scenario.example("ticket-overcommit")
    other = overspin.run(scenario.set("domain.guest.lock", "xen-pv"), seed=1)
    comparison = overspin.compare(overcommitted, other, names=("ticket", "xen-pv"), better="higher", metrics=["items"])
    # A single sample on each side proves nothing.
    assert comparison.finding == "undecided"
    (row,) = comparison.table.to_dicts()
    assert row["mean_a"] == overcommitted.metric("items") and row["mean_b"] == other.metric("items")
    assert row["ratio"] == pytest.approx(row["mean_b"] / row["mean_a"])
    assert "xen-pv" in str(comparison) and repr(comparison).startswith("<overspin.Comparison: undecided")
    with pytest.raises(overspin.UnknownName, match="the result has: "):
        overspin.compare(overcommitted, other, metrics=["nothing"])
    with pytest.raises(ValueError, match="confidence is 95"):
        overspin.compare(overcommitted, other, confidence=95)


def test_lists() -> None:
    assert {"ticket", "mcs", "xen-pv"} <= set(overspin.locks()["name"])
    credit = next(row for row in overspin.schedulers() if row["name"] == "credit")
    assert any(parameter["key"] for parameter in credit["params"])
    assert "lock-loop" in overspin.workloads()["name"] and len(overspin.machines()) > 5
