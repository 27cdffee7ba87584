"""Tables: their contents against the record, and their way through Arrow into other libraries."""

from __future__ import annotations

import json
from typing import Any

import pytest

import overspin
from overspin import Result, Table

TABLES = ["metrics", "runs", "locks", "vcpus", "pcpus", "tasks", "waits"]


@pytest.fixture(params=[*TABLES, "slices", "marks"])
def table(request: pytest.FixtureRequest, overcommitted: Result) -> Table:
    """Every table of a run."""
    found: Table = getattr(overcommitted, request.param)
    return found() if callable(found) else found


def outcome(result: Result) -> Any:
    """The outcome in the record."""
    return json.loads(result.to_json())["runs"][0]["outcome"]


def test_tables_have_what_the_record_has(overcommitted: Result) -> None:
    record = json.loads(overcommitted.to_json())
    rows = [{key: row[key] for key in ("where", "metric", "unit", "value")} for row in overcommitted.metrics]
    assert rows == [{key: s[key] for key in ("where", "metric", "unit", "value")} for s in record["samples"]]
    domain = outcome(overcommitted)["domains"][0]
    assert overcommitted.locks["acquisitions"] == [lock["acquisitions"] for lock in domain["locks"]]
    # Records have picoseconds.
    assert overcommitted.locks["wait_total_us"] == [lock["wait_total"] / 1e6 for lock in domain["locks"]]
    assert overcommitted.vcpus["running_us"] == [vcpu["running"] / 1e6 for vcpu in domain["vcpus"]]
    assert overcommitted.tasks["items"] == [task["items"] for task in domain["tasks"]]


def test_causes_add_up_to_the_waits(overcommitted: Result) -> None:
    for table, total in [(overcommitted.locks, "wait_total_us"), (overcommitted.waits, "time_us")]:
        for row in table:
            causes = sum(value for name, value in row.items() if name.startswith("cause_"))
            assert causes == pytest.approx(row[total], abs=1e-3)


def test_chains_cover_their_waits(overcommitted: Result) -> None:
    waits = overcommitted.waits.to_dicts()
    assert waits and waits == sorted(waits, key=lambda wait: -wait["time_us"])
    for wait in waits:
        chain = wait["chain"]
        assert chain[0]["since_us"] == pytest.approx(wait["since_us"])
        assert sum(link["time_us"] for link in chain) == pytest.approx(wait["time_us"])


def test_slices_of_a_vcpu_are_its_time(overcommitted: Result) -> None:
    slices = overcommitted.slices()
    # Tables count from the end of the warm-up, slices are of the whole run.
    warmup_us = overcommitted.warmup_s * 1e6
    assert 0 < warmup_us == overcommitted.runs["warmup_us"][0]
    for row in overcommitted.vcpus:
        name = f"{row['domain']}/v{row['vcpu']}"
        own = [s for s in slices if s["vcpu"] == name and s["end_us"] > warmup_us]
        for doing in ("running", "runnable", "blocked"):
            length = sum(s["end_us"] - max(s["start_us"], warmup_us) for s in own if s["doing"] == doing)
            # Slices have nanoseconds.
            assert length == pytest.approx(row[f"{doing}_us"], abs=2.0), (name, doing)
    holds = [s for s in slices if s["doing"] == "holds" and s["lock"] == "guest/section" and s["start_us"] >= warmup_us]
    # The lock may be held when the warm-up ends, and when the run ends.
    acquisitions = overcommitted.locks["acquisitions"][0]
    assert abs(len(holds) - acquisitions) <= 1


def test_a_cut_timeline_says_so(overcommitted: Result) -> None:
    with pytest.warns(overspin.TimelineCut, match="100 slices and marks end at"):
        cut = overcommitted.slices(limit=100)
    assert 0 < len(cut) < len(overcommitted.slices())
    with pytest.warns(overspin.TimelineCut):
        later = overcommitted.slices(start_us=1e6, limit=100)
    assert min(later["start_us"]) >= 1e6


def test_units_are_in_names_and_metadata(table: Table) -> None:
    for name, unit in table.units.items():
        assert (unit == "us") == name.endswith("_us"), name


def test_pyarrow_reads_a_table_in_place(table: Table) -> None:
    pa = pytest.importorskip("pyarrow")
    arrow = pa.table(table)
    assert arrow.column_names == table.column_names and arrow.num_rows == len(table)
    arrow.validate(full=True)
    assert arrow.to_pylist() == table.to_dicts()
    for field in arrow.schema:
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        assert unit == table.units[field.name]
    assert pa.schema(table) == arrow.schema


def test_a_reader_gets_the_same_memory(overcommitted: Result) -> None:
    pa = pytest.importorskip("pyarrow")
    locks = overcommitted.locks
    buffers = [pa.table(locks)["wait_total_us"].chunk(0).buffers()[1].address for _ in range(2)]
    assert buffers[0] == buffers[1], "no copy is made"


def test_a_reader_outlives_the_table(overcommitted: Result) -> None:
    pa = pytest.importorskip("pyarrow")
    values = pa.table(overcommitted.vcpus)["running_us"]
    assert values.to_pylist() == overcommitted.vcpus["running_us"]


def test_polars_reads_a_table(table: Table) -> None:
    pl = pytest.importorskip("polars")
    frame = table.to_polars()
    assert isinstance(frame, pl.DataFrame) and frame.columns == table.column_names
    assert frame.to_dicts() == table.to_dicts()


def test_pandas_reads_a_table(table: Table) -> None:
    pd = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == table.column_names
    for name, unit in table.units.items():
        if unit:
            numbers = [None if pd.isna(value) else value for value in frame[name]]
            assert numbers == table[name]


def test_duckdb_reads_a_table(overcommitted: Result) -> None:
    duckdb = pytest.importorskip("duckdb")
    locks = overcommitted.locks.to_pyarrow()
    assert locks is not None
    total = duckdb.sql("select sum(acquisitions) from locks").fetchall()
    assert total == [(sum(overcommitted.locks["acquisitions"]),)]


def test_a_table_shows_itself(table: Table) -> None:
    text = repr(table)
    assert text.endswith(f"column{'' if len(table.column_names) == 1 else 's'})")
    assert max(len(line) for line in text.splitlines()) <= 100
    # Columns without anything but zeros are left out, and times have the unit that suits them.
    telling = [name for name in table.column_names if any(value not in (0, None, "") for value in table[name])]
    assert text.splitlines()[0].split()[0] == table.column_names[0].removesuffix("_us")
    assert len(telling) <= table._repr_html_().count("<th ") <= len(table.column_names)
    assert "_us" not in text.splitlines()[0]


def test_equal_runs_have_equal_tables(small: overspin.Scenario) -> None:
    one, other = (overspin.run(small, seed=2) for _ in range(2))
    assert one.locks == other.locks and one.slices() == other.slices()
    assert one.slices() != overspin.run(small, seed=3).slices()
    with pytest.raises(KeyError, match="there is no column `nothing`; columns are: run"):
        one.metrics["nothing"]


def test_a_table_of_any_length_iterates(overcommitted: Result) -> None:
    assert [row["name"] for row in overcommitted.locks] == overcommitted.locks["name"]
