"""Runs: equal to those of the command, in threads, in processes, and interrupted."""

from __future__ import annotations

import concurrent.futures
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT, SMALL

import overspin
from overspin import Scenario


def test_a_run_gives_the_bytes_of_the_command(binary: Path, tmp_path: Path) -> None:
    file = ROOT / "examples/ticket-overcommit.toml"
    record = tmp_path / "r.json"
    changes = ["--set", "domain.guest.lock=mcs", "--seed", "7"]
    subprocess.run([binary, "run", file, *changes, "--json", record, "--quiet"], check=True)
    result = overspin.run(Scenario.from_file(file).set("domain.guest.lock", "mcs"), seed=7)
    assert result.to_json() == record.read_text()
    assert overspin.Result.load(record) == result
    # The command explains the record that the package saves, and both say the same.
    result.save(tmp_path / "s.json")
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    said = subprocess.check_output([binary, "explain", tmp_path / "s.json"], text=True, env=environment)
    assert said == result.explain()


def test_seeds(small: Scenario) -> None:
    assert overspin.run(small, seed=3).seed == 3
    assert overspin.run(small).seed == small.seed
    with pytest.raises(OverflowError):
        overspin.run(small, seed=-1)


def test_a_path_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    assert overspin.run(path, seed=1) == overspin.run(str(path), seed=1)


def test_a_run_can_be_limited_in_real_time(long: Scenario) -> None:
    result = overspin.run(long, max_wall=0.05)
    assert result.ending == "stopped" and len(result.metrics) == 0
    with pytest.raises(overspin.UnknownName, match="not sound"):
        result.metric("busy")
    with pytest.raises(ValueError, match="max_wall is -1"):
        overspin.run(long, max_wall=-1)


def test_a_deadlock_is_an_ending_or_an_error(small: Scenario, tmp_path: Path) -> None:
    # No built-in lock deadlocks in a scenario, so the record of a run says so here.
    record = json.loads(overspin.run(small).to_json())
    record["runs"][0]["outcome"]["ending"] = {"how": "deadlock", "waits": ["guest/v0 waits for the lock"]}
    (tmp_path / "r.json").write_text(json.dumps(record))
    result = overspin.Result.load(tmp_path / "r.json")
    assert result.ending == "deadlock" and result.deadlock == ["guest/v0 waits for the lock"]
    with pytest.raises(overspin.DeadlockError, match="guest/v0 waits") as raised:
        result.check()
    assert raised.value.result is result and isinstance(raised.value, RuntimeError)
    assert overspin.run(small, strict=True).check().ending == "limit"


def test_worlds_are_named(small: Scenario) -> None:
    with pytest.raises(overspin.UnknownName, match="there is no world `simm`"):
        overspin.run(small, world="simm")
    measured = overspin.run(small.set("limit", "20ms"), world="threads")
    assert measured.world == "threads" and len(measured.locks) == 1
    with pytest.raises(overspin.NotInResult, match="no run is repeated"):
        measured.slices()


INTERRUPTED = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from conftest import LONG
import overspin
scenario = overspin.Scenario.from_toml(LONG)
print("begun", flush=True)
try:
    overspin.run(scenario)
except KeyboardInterrupt:
    print("interrupted", time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
# And the next run is not stopped by the last one's interrupt.
print(overspin.run(scenario, max_wall=0.01).ending)
"""


def test_ctrl_c_interrupts_a_run_at_once() -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent)]
    delays = []
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None and child.stdout.readline() == "begun\n"
            time.sleep(0.3)
            sent = time.clock_gettime(time.CLOCK_MONOTONIC)
            child.send_signal(signal.SIGINT)
            word, at = child.stdout.readline().split()
            assert word == "interrupted" and child.stdout.readline() == "stopped\n"
            delays.append(float(at) - sent)
    # Tests have no time goals; this bound only tells an interrupt from the end of a run of hours. The median is shown.
    print("delays of Ctrl-C in seconds:", sorted(delays))
    assert max(delays) < 10


def test_other_threads_go_on_during_a_run(long: Scenario) -> None:
    worker = threading.Thread(target=overspin.run, args=(long,), kwargs={"max_wall": 0.3})
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0.001)
    # Without the release of the lock, this thread would have had its turn only at the end.
    assert turns > 20


def test_threads_get_equal_results(small: Scenario) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda seed: overspin.run(small, seed=seed), [1, 2] * 8))
    assert all(result == results[i % 2] for i, result in enumerate(results))
    assert results[0] != results[1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_processes_get_equal_results(method: str, small: Scenario) -> None:
    here = overspin.run(small, seed=5)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(overspin.run, [small] * 4, [5] * 4)) == [here] * 4


def test_ten_thousand_runs_leave_nothing_behind() -> None:
    scenario = Scenario.from_toml(SMALL.replace('"5ms"', '"100us"'))

    def memory() -> int:
        """Pages that the process has in memory."""
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1])

    def runs(count: int) -> None:
        for seed in range(count):
            result = overspin.run(scenario, seed=seed)
            assert len(result.metrics) and len(result.locks)

    runs(1000)
    before = memory()
    runs(10_000)
    grown = (memory() - before) * os.sysconf("SC_PAGE_SIZE")
    # A record is some 10 kB: if each run left one behind, this would be 100 MB.
    assert grown < 10_000_000, f"{grown} bytes more after 10,000 runs"
    tasks = len(os.listdir("/proc/self/task"))
    assert tasks < 32, f"{tasks} threads are left"


def test_the_record_is_json(small: Scenario) -> None:
    record = json.loads(overspin.run(small, seed=1).to_json())
    assert record["schema"] == "overspin-record/1" and record["model_version"] == overspin.MODEL_VERSION
    assert "command" not in record and "environment" not in record
