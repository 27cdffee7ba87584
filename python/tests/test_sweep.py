"""Sweeps: equal wherever their runs are made, kept as they come, and continued."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, SMALL

import overspin
from overspin import Scenario, Sweep

SPACE = {"domain.guest.lock": ["ticket", "mcs"], "domain.guest.vcpus": [2, 3, 4]}
HAS_DASK = importlib.util.find_spec("distributed") is not None


def make(**options: Any) -> Sweep:
    return overspin.sweep(Scenario.from_toml(SMALL), SPACE, seeds=5, **options)


@pytest.fixture(scope="module")
def alone() -> Sweep:
    """The sweep, made by a single thread."""
    return make(threads=1)


def test_rows_are_those_of_single_runs_and_of_the_command(alone: Sweep, binary: Path, tmp_path: Path) -> None:
    assert len(alone) == 30 and alone.missing == 0 and alone.errors == []
    assert alone.axes == {"lock": ("ticket", "mcs"), "vcpus": ("2", "3", "4")}
    assert alone["run"] == list(range(30)) and set(alone["seed"]) == {1, 2, 3, 4, 5}
    scenario = Scenario.from_toml(SMALL)
    for row in list(alone)[::7]:
        single = overspin.run(scenario.set("domain.guest.lock", row["lock"]).set("domain.guest.vcpus", row["vcpus"]), row["seed"])
        assert row["trace_hash"] == single.trace_hash and row["ending"] == single.ending
        assert row["elapsed_us"] == single.elapsed_s * 1e6
        assert row["wait-p99"] == max(single.locks["wait_p99_us"])
    # The command measures the same, in the same units.
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    axes = ["-L", "domain.guest.lock=ticket,mcs", "-L", "domain.guest.vcpus=2,3,4", "--seeds", "5"]
    subprocess.run([binary, "sweep", file, *axes, "--out", tmp_path / "out", "--quiet"], check=True)
    made = overspin.Result.load(tmp_path / "out")
    samples = {(row["where"], row["seed"], row["metric"]): (row["value"], row["unit"]) for row in made.metrics}
    assert len(samples) == 30 * len(alone.metrics)
    for row in alone:
        for metric in alone.metrics:
            place = f"{row['lock']}.{row['vcpus']}"
            assert samples[place, row["seed"], metric] == (row[metric], alone.table.units[metric])


@pytest.mark.parametrize("threads", [0, 2, 7])
def test_threads_make_equal_results(alone: Sweep, threads: int) -> None:
    assert make(threads=threads) == alone


def test_a_pool_of_threads_makes_equal_results(alone: Sweep) -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert make(executor=pool, batch_seconds=0.003) == alone
        # The pool is the caller's, and still works.
        assert pool.submit(int, "1").result() == 1


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_make_equal_results(alone: Sweep, method: str) -> None:
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert make(executor=pool, batch_seconds=0.003) == alone


def test_a_killed_process_loses_no_finished_run(alone: Sweep, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:

        def kill(made: int, total: int) -> None:
            if made >= 5:
                for process in list((pool._processes or {}).values()):
                    process.kill()

        with pytest.raises(overspin.SweepError, match="runs were made.*\n.*make another executor") as raised:
            make(executor=pool, out=out, batch_seconds=0.003, progress=kill)
    came = raised.value.sweep
    assert 5 <= len(came) == 30 - came.missing and not out.exists()
    rows = {row["run"]: row for row in alone}
    assert all(row == rows[row["run"]] for row in came)
    assert make(out=out) == alone


needs_dask = pytest.mark.skipif(not HAS_DASK, reason="skipped: no package distributed")


@needs_dask
def test_a_cluster_that_loses_a_worker_makes_equal_results(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    scenario = Scenario.from_toml(SMALL)
    expected = overspin.sweep(scenario, SPACE, seeds=100)
    killed: list[int] = []
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:

        def kill(made: int, total: int) -> None:
            if made > total // 3 and not killed:
                pid = next(iter(client.run(os.getpid).values()))
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        out = tmp_path / "rows.parquet"
        made = overspin.sweep(scenario, SPACE, seeds=100, executor=client, out=out, batch_seconds=0.02, progress=kill)
    assert killed, "no worker was killed"
    assert made == expected and len(made) == 600
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


@needs_dask
def test_a_batch_that_is_submitted_again_is_not_made_again() -> None:
    from distributed import Client, LocalCluster

    from overspin.batches import key
    from overspin.executors import crew
    from overspin.space import plan

    todo = plan(Scenario.from_toml(SMALL), SPACE, 5)
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        hands = crew(client, 0, 3)
        first = hands.submit(todo.batch(0, 4), key(todo, 0, 4))
        assert len(first.result()[0]) == 4
        again = hands.submit(todo.batch(0, 4), key(todo, 0, 4))
        # The scheduler knows the key: the task has its result at once, with the seconds of the first time.
        assert again.key == first.key and again.result()[1] == first.result()[1]


def test_keys_name_what_is_run() -> None:
    from overspin.batches import key
    from overspin.space import plan

    def of(text: str = SMALL, space: Any = SPACE, seeds: Any = 5) -> str:
        return key(plan(Scenario.from_toml(text), space, seeds), 0, 4)

    # Neither a comment nor the name changes what is run, nor do seeds that come later.
    assert of() == of("# a comment\n" + SMALL.replace('"small"', '"other"')) == of(seeds=9)
    others = [of(SMALL.replace('"5ms"', '"6ms"')), of(seeds=[7]), of(space={**SPACE, "domain.guest.vcpus": [2, 3, 5]})]
    assert len({of(), *others}) == 4


class Counted(concurrent.futures.Executor):
    """Counts the batches that are under way."""

    def __init__(self, inner: concurrent.futures.Executor) -> None:
        self.inner, self.now, self.most, self.sizes = inner, 0, 0, list[int]()
        self.lock = threading.Lock()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.sizes.append(len(arguments[0]))
        future = self.inner.submit(function, *arguments, **options)
        future.add_done_callback(self.ended)
        return future

    def ended(self, _: object) -> None:
        with self.lock:
            self.now -= 1


def test_batches_under_way_are_bounded_and_grow(small: Scenario) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        counted = Counted(pool)
        made = overspin.sweep(small, seeds=500, executor=counted, in_flight=3, batch_seconds=0.05)
    assert len(made) == 500 and 1 < counted.most <= 3
    assert counted.sizes[0] == 1 and max(counted.sizes) > 1
    for i in range(1, len(counted.sizes)):
        assert counted.sizes[i] <= 2 * max(counted.sizes[:i])
    assert sum(counted.sizes) == 500


class Failing(Counted):
    """Every third batch fails once."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        if len(self.sizes) % 3 == 2:
            self.sizes.append(0)
            future: concurrent.futures.Future[Any] = concurrent.futures.Future()
            future.set_exception(OSError("the network is down"))
            return future
        return super().submit(function, *arguments, **options)


def test_a_batch_that_fails_is_tried_again(alone: Sweep) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert make(executor=Failing(pool), batch_seconds=0.003) == alone
        with pytest.raises(overspin.SweepError, match="OSError: the network is down") as raised:
            make(executor=Failing(pool), batch_seconds=0.003, retries=0)
    assert raised.value.sweep.missing > 0


def test_rows_are_parquet(alone: Sweep, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="skipped: no package pyarrow")
    file, folder = tmp_path / "rows.parquet", tmp_path / "rows"
    assert make(out=file) == make(out=folder) == alone
    table = parquet.read_table(file)
    assert table.to_pylist() == list(alone)
    assert table.schema.field("throughput").metadata[b"unit"] == b"1/s"
    parts = parquet.ParquetDataset([str(path) for path in sorted(folder.glob("*.parquet"))]).read()
    assert parts.to_pylist() == list(alone)
    # The file does not tell how its runs were made.
    again = tmp_path / "again.parquet"
    make(out=again, threads=1, batch_seconds=0.01)
    assert again.read_bytes() == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.parquet", "rows", "rows.parquet"]


@pytest.mark.parametrize("name", ["rows", "rows.parquet"])
def test_what_is_there_is_not_made_again(alone: Sweep, name: str, tmp_path: Path) -> None:
    def runs(seeds: int) -> int:
        counted = Counted(concurrent.futures.ThreadPoolExecutor(1))
        made = overspin.sweep(Scenario.from_toml(SMALL), SPACE, seeds, executor=counted, out=tmp_path / name)
        assert list(made) == list(alone)[: 6 * seeds]
        return sum(counted.sizes)

    # More seeds continue fewer.
    assert [runs(seeds) for seeds in (2, 2, 5, 5)] == [12, 0, 18, 0]
    with pytest.raises(overspin.RunError, match="holds another result: its seeds are not the first"):
        make_seeds(tmp_path / name, [9])
    with pytest.raises(overspin.RunError, match="`points` is 6 there and 1 here"):
        overspin.sweep(Scenario.from_toml(SMALL), out=tmp_path / name)
    with pytest.raises(overspin.RunError, match="the scenario or the values"):
        overspin.sweep(Scenario.from_toml(SMALL.replace('"5ms"', '"6ms"')), SPACE, seeds=5, out=tmp_path / name)


def make_seeds(out: Path, seeds: list[int]) -> Sweep:
    return overspin.sweep(Scenario.from_toml(SMALL), SPACE, seeds, out=out)


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import SMALL
import overspin
space = {"domain.guest.lock": ["ticket", "mcs"]}
print("begun", flush=True)
try:
    overspin.sweep(overspin.Scenario.from_toml(SMALL), space, seeds=1_000_000, out=sys.argv[2], batch_seconds=0.05,
        progress=lambda made, total: print("made", flush=True))
except overspin.SweepInterrupted as interrupted:
    sweep = interrupted.sweep
    print("interrupted", len(sweep), sweep.missing, len(sweep.table), flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_and_a_kill_keep_what_came(how: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        for _ in range(8):
            assert child.stdout.readline() == "made\n"
        child.send_signal(how)
        rest = child.stdout.read().split()
    parts = sorted((tmp_path / "rows.parquet.parts").glob("*.parquet"))
    kept = sum(int(stop) - int(start) for start, stop in (path.stem.split("-") for path in parts))
    assert kept > 0 and len(parts) >= 8 and not out.exists()
    if how == signal.SIGINT:
        word, made, missing, length = rest[-4:]
        assert word == "interrupted" and int(made) == int(length) == kept and int(missing) == 2_000_000 - kept
    # Fewer seeds would be another result; so the rows are read as they are.
    tables = [overspin._overspin.read_parquet(path) for path in parts]
    # A batch that was under way is missing, and it may be an early one.
    rows = list(overspin._overspin.join(tables))[:8]
    seeds = rows[-1]["run"] // 2 + 1
    expected = list(overspin.sweep(Scenario.from_toml(SMALL), {"domain.guest.lock": ["ticket", "mcs"]}, seeds=seeds))
    assert rows == [expected[row["run"]] for row in rows]


def test_a_run_that_fails_is_a_row(small: Scenario) -> None:
    template = overspin._overspin.Template(small)
    # The second point passes no check of a plan: it stands for a run that the simulator refuses.
    points: list[tuple[list[str], list[str | None]]] = [([], ["ticket"]), (["domain.guest.lock=none"], ["none"])]
    table, seconds = template.run(7, points, [(0, 1), (1, 1), (0, 2)], [("lock", "text")])
    assert table["run"] == [7, 8, 9] and table["lock"] == ["ticket", "none", "ticket"] and seconds > 0
    assert table["ending"] == ["limit", None, "limit"] and table["throughput"][1] is None
    assert "none" in table["error"][1] and table["error"][::2] == [None, None]
    assert table["trace_hash"][2] == overspin.run(small, seed=2).trace_hash


def test_points_may_be_listed(alone: Sweep, small: Scenario) -> None:
    points: Any = [{"domain.guest.lock": "mcs", "domain.guest.vcpus": 3}, {"domain.guest.lock": "ticket"}]
    made = overspin.sweep(small, points, seeds=[5, 2])
    assert made["vcpus"] == [3, None, 3, None] and made["seed"] == [5, 5, 2, 2] and made["lock"] == ["mcs", "ticket"] * 2
    twin = next(row for row in alone if (row["lock"], row["vcpus"], row["seed"]) == ("mcs", 3, 2))
    assert made["trace_hash"][2] == twin["trace_hash"]


def test_values_of_every_sort(small: Scenario) -> None:
    made = overspin.sweep(small, {"domain.guest.vcpus/host.cores": [(2, 1), (4, 2)], "limit": ["1ms", "2ms"]})
    assert made.axes == {"vcpus/cores": ("2/1", "4/2"), "limit": ("1ms", "2ms")}
    assert made["elapsed_us"] == [1000, 2000] * 2
    workloads = [{"kind": "lock-loop", "section": "1us"}, {"kind": "lock-loop", "section": "9us"}]
    assert len(overspin.sweep(small, {"domain.guest.workload": workloads})) == 2
    assert overspin.sweep(small, {"domain.guest.lock": ["every lock"], "limit": ["100us"]}).axes["lock"] == tuple(overspin.locks()["name"])
    assert overspin.sweep(small, {"seed": [4, 9]})["seed"] == [4, 9]
    file = Scenario.from_toml(SMALL + '[[vary]]\nname = "vcpus"\nset = "domain.guest.vcpus"\nto = ["2", "3"]\n')
    assert overspin.sweep(file)["vcpus"] == [2, 3]
    assert overspin.sweep(file, {"domain.guest.lock": ["mcs"]})["lock"] == ["mcs"] * 2


def test_a_record_is_swept_too(small: Scenario, tmp_path: Path) -> None:
    overspin.run(small.set("limit", "1ms"), seed=3).save(tmp_path / "r.json")
    made = overspin.sweep(tmp_path / "r.json", {"domain.guest.lock": ["ticket"]}, seeds=[3])
    assert made["trace_hash"] == [overspin.run(small.set("limit", "1ms"), seed=3).trace_hash]


def test_the_table_is_arrow(alone: Sweep) -> None:
    polars = pytest.importorskip("polars", reason="skipped: no package polars")
    frame = polars.DataFrame(alone)
    assert frame.height == 30 and frame["throughput"].to_list() == alone["throughput"]
    assert alone.to_polars().equals(frame)
    assert pickle.loads(pickle.dumps(alone.table)) == alone.table
    assert all(math.isfinite(value) for metric in alone.metrics for value in alone[metric])
    assert "30 rows" in str(alone) and "<table" in alone._repr_html_()
    assert repr(alone) == "<overspin.Sweep: small along lock (2) and vcpus (3), 30 runs>"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"space": {"domain.guest.lock": "mcs"}}, TypeError, "must have a list of values\n help: write \\['mcs'\\]"),
        ({"space": "domain.guest.lock=mcs"}, TypeError, "`space` is a text\n help: give a mapping"),
        ({"space": ["mcs"]}, TypeError, "element of type str"),
        ({"space": []}, ValueError, "no points"),
        ({"space": {"domain.guest.lock": []}}, overspin.ScenarioError, "at least one value"),
        ({"space": {"domain.guest.lok": ["mcs"]}}, overspin.ScenarioError, "did you mean `lock`"),
        ({"space": {"domain.guest.lock": ["mcs", "msc"]}}, overspin.ScenarioError, "msc"),
        ({"space": {"seed": [1]}, "seeds": 2}, ValueError, "both `space` and `seeds`"),
        ({"space": [{"seed": 1}]}, ValueError, "names the seed"),
        ({"seeds": 0}, ValueError, "`seeds` is 0"),
        ({"seeds": [1, 1]}, ValueError, "listed twice"),
        ({"seeds": [-1]}, ValueError, "out of range"),
        ({"executor": 4}, TypeError, "`executor` is of type int\n help: give an executor"),
        ({"threads": -1}, ValueError, "`threads` is -1"),
        ({"in_flight": 0}, ValueError, "`in_flight` is 0"),
        ({"batch_seconds": 0}, ValueError, "`batch_seconds` is 0"),
        ({"out": "no/such/\0"}, ValueError, "null byte"),
    ],
)
def test_misuse_is_named(small: Scenario, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        overspin.sweep(small, **options)


def test_files_of_others_are_left_alone(small: Scenario, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    (tmp_path / "x.parquet").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(overspin.RunError, match="holds something else: notes.txt"):
        overspin.sweep(small, out=tmp_path / "mine")
    with pytest.raises(OSError, match="cannot read"):
        overspin.sweep(small, out=tmp_path / "x.parquet")
    with pytest.raises(overspin.RunError, match="is a file"):
        overspin.sweep(small, out=tmp_path / "file")
    assert (tmp_path / "x.parquet").read_text() == "mine"


def test_two_sweeps_do_not_share_a_directory(small: Scenario, tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    def wait(made: int, total: int) -> None:
        begun.set()
        go.wait(60)

    first = threading.Thread(target=overspin.sweep, args=(small, None, 2), kwargs={"out": tmp_path / "d", "progress": wait})
    first.start()
    try:
        assert begun.wait(60)
        with pytest.raises(overspin.RunError, match="another sweep is writing"):
            overspin.sweep(small, None, 2, out=tmp_path / "d")
    finally:
        go.set()
        first.join()
    assert json.loads((tmp_path / "d/manifest.json").read_text())["seeds"] == [1, 2]


def test_a_worker_of_another_version_is_refused(small: Scenario) -> None:
    from dataclasses import replace

    from overspin.space import plan, work

    batch = plan(small, None, 1).batch(0, 1)
    with pytest.raises(overspin.RunError, match="install the same version"):
        work(replace(batch, version=("0.0.0", 1)))


def test_ctrl_c_stops_long_runs(tmp_path: Path) -> None:
    code = f"import overspin\nprint('begun', flush=True)\noverspin.sweep(overspin.Scenario.from_toml({LONG!r}), seeds=4)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None and child.stdout.readline() == "begun\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        # A run takes hours: the test would never end if it were not stopped.
        assert "SweepInterrupted: interrupted: 4 of 4 runs are missing" in child.stderr.read()
