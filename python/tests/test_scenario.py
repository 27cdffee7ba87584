"""Scenarios: reading, changing, and every way in which that fails."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from conftest import SMALL

import overspin
from overspin import Scenario, ScenarioError, UnknownName


def test_a_change_makes_another_scenario(small: Scenario) -> None:
    changed = small.set("domain.guest.lock", "mcs").set("domain.0.vcpus", 4)
    assert small.changes == []
    assert changed.changes == ["domain.guest.lock=mcs", "domain.0.vcpus=4"]
    assert changed != small and changed == Scenario.from_toml(SMALL).set("domain.guest.lock", "mcs").set("domain.0.vcpus", 4)
    assert 'lock = "mcs"' in changed.to_toml() and "vcpus = 4" in changed.to_toml()


def test_values_of_python_become_values_of_toml(small: Scenario) -> None:
    assert small.set("host.noise.placement", "none").changes == ["host.noise.placement=none"]
    changed = small.set("domain.guest.workload", {"kind": "lock-loop", "section": "7us"})
    assert 'section = "7us"' in changed.to_toml()
    assert small.set("domain.guest.nopvspin", True).changes == ["domain.guest.nopvspin=true"]
    assert small.set("domain.guest.affinity", ["0", "0"]).changes == ['domain.guest.affinity=["0", "0"]']
    with pytest.raises(TypeError, match="no values of type object"):
        small.set("limit", object())


def test_what_is_written_is_read_again(small: Scenario) -> None:
    again = Scenario.from_toml(small.to_toml())
    assert again.to_json() == small.to_json()
    assert overspin.run(again).trace_hash == overspin.run(small).trace_hash


def test_a_fault_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace('lock = "ticket"', 'lock = "tiket"'))
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_file(path)
    error = raised.value
    assert isinstance(error, ValueError) and isinstance(error, overspin.Error)
    # Line 9 of the text begins with `lock = `.
    assert (error.file, error.line, error.column) == (str(path), 9, 8)
    assert error.key == "domain.guest.lock" and "tiket" in error.message and "`ticket`" in error.help
    drawn = str(error)
    assert drawn.startswith(f"{path}:9:8: {error.message}")
    assert 'lock = "tiket"' in drawn and "\x1b" not in drawn
    assert str(pickle.loads(pickle.dumps(error))) == drawn


def test_a_fault_in_a_change_points_into_the_change(small: Scenario) -> None:
    with pytest.raises(ScenarioError) as raised:
        small.set("domain.guest.lok", "mcs")
    assert raised.value.file == "--set" and "did you mean `lock`?" in raised.value.help
    with pytest.raises(ScenarioError, match="no element `nobody`"):
        small.set("domain.nobody.lock", "mcs")
    with pytest.raises(ScenarioError, match="this is not TOML"):
        Scenario.from_toml("limit = = 1")


def test_files_that_cannot_be_read_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        Scenario.from_file(tmp_path / "absent.toml")
    assert raised.value.filename == str(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="UTF-8"):
        Scenario.from_file(tmp_path / "binary.toml")


def test_every_example_can_be_read() -> None:
    names = overspin.examples()
    assert "ticket-overcommit" in names
    for name in names:
        assert Scenario.example(name).name
    with pytest.raises(UnknownName, match="did you mean `ticket-overcommit`") as raised:
        Scenario.example("ticket-overcomit")
    assert isinstance(raised.value, LookupError)


def test_a_sweep_says_along_what() -> None:
    sweep = Scenario.example("lock-map")
    assert len(sweep.axes) >= 2 and all(len(values) > 1 for values in sweep.axes.values())
    with pytest.raises(ScenarioError, match="this is a sweep along"):
        overspin.run(sweep)


def test_a_scenario_survives_pickling(small: Scenario) -> None:
    changed = small.set("limit", "1ms")
    assert pickle.loads(pickle.dumps(changed)) == changed
