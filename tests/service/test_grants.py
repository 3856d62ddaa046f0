"""Standing grants: learned once, kept for their workspace, revocable, and nothing lost between processes."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest

from counterfoil.errors import ConfigError
from counterfoil.service.grants import Grants, StandingGrant


def rules(grants: Grants, place: Path) -> list[str]:
    return [g.rule for g in grants.of(str(place))]


def test_a_rule_is_kept_for_its_workspace_alone_and_for_other_processes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    Grants(tmp_path).add(str(one), StandingGrant(rule="Bash(make test)", ask_id="ask_1"))
    other = Grants(tmp_path)
    assert rules(other, one) == ["Bash(make test)"] and rules(other, two) == []
    assert stat.S_IMODE((tmp_path / "grants.json").stat().st_mode) == 0o600


def test_learning_twice_is_once_and_revoking_forgets(tmp_path: Path) -> None:
    grants, watching = Grants(tmp_path), Grants(tmp_path)
    for _ in range(2):
        grants.add("/w", StandingGrant(rule="Edit"))
    assert rules(watching, Path("/w")) == ["Edit"]
    assert grants.revoke("/w", "Edit") and not grants.revoke("/w", "Edit")
    assert rules(watching, Path("/w")) == [], "what another process revoked holds at once"


def test_a_workspace_is_the_same_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    Grants(tmp_path).add(str(tmp_path / "link"), StandingGrant(rule="Edit"))
    assert rules(Grants(tmp_path), tmp_path / "real") == ["Edit"]


def test_a_file_that_is_damaged_is_an_error_and_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "grants.json").write_text("{")
    with pytest.raises(ConfigError):
        Grants(tmp_path).of("/w")
    with pytest.raises(ConfigError):
        Grants(tmp_path).add("/w", StandingGrant(rule="Edit"))
    assert (tmp_path / "grants.json").read_text() == "{"


def _learn(folder: str, who: int) -> None:
    for n in range(20):
        Grants(Path(folder)).add("/w", StandingGrant(rule=f"Bash(echo {who}-{n})"))


def test_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_learn, args=(str(tmp_path), who)) for who in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(rules(Grants(tmp_path), Path("/w"))) == 60


def test_rules_that_others_could_have_written_hold_for_nobody(tmp_path: Path) -> None:
    inside = Grants(tmp_path / "work" / "state")
    inside.add(str(tmp_path / "work"), StandingGrant(rule="Bash"))
    assert rules(inside, tmp_path / "work") == []
    outside = Grants(tmp_path / "state")
    outside.add(str(tmp_path / "work"), StandingGrant(rule="Edit"))
    (tmp_path / "state" / "grants.json").chmod(0o666)
    with pytest.raises(ConfigError, match="others can write it"):
        rules(Grants(tmp_path / "state"), tmp_path / "work")
