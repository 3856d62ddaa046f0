"""`sessions`, `inspect`, `verify`, `config check`, `models`: what is stored, shown, copied, deleted, checked."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.cli.support import Cli, bash, one_line

SAY = {"text": "Done."}


@pytest.fixture
def one(cli: Cli) -> str:
    """A session with a denied and an allowed call."""
    script = cli.script({"text": "Look.", "calls": [bash("echo `x`"), bash("echo ok", "call_1")]}, SAY)
    value = cli("run", "# do this\nplease", "--script", script, "--ask=deny", "--output=json").json
    return str(value["session_id"])


def test_a_session_is_meant_by_id_by_a_unique_beginning_or_as_the_last(cli: Cli, one: str) -> None:
    for reference in (one, one[:-1], "last"):
        assert cli("inspect", reference, "--json").json["session"]["session_id"] == one
    cli("run", "x", "--script", cli.script(SAY))
    assert cli("inspect", "last", "--json").json["session"]["session_id"] != one
    ambiguous = cli("inspect", one[:8])
    assert ambiguous.code == 2
    assert "2 sessions begin with" in one_line(ambiguous)
    assert cli("inspect", one[:7]).code == 2


def test_the_list_has_the_latest_first(cli: Cli, one: str) -> None:
    cli("run", "another", "--script", cli.script(SAY))
    found = cli("sessions", "list", "--json").json
    assert [s["title"] for s in found] == ["another", "# do this"]
    shown = cli("sessions", "list", "--limit", "1").out
    assert "another" in shown
    assert one not in shown


def test_inspecting_one_call_shows_all_of_it(cli: Cli, one: str) -> None:
    call = cli("inspect", one, "--json").json["calls"][0]["tool_call_id"]
    shown = cli("inspect", one, call).out
    for text in (call, one, '"command": "echo `x`"', "executed: no", "deny (once) by --ask=deny (policy)"):
        assert text in shown
    assert cli("inspect", one, call, "--json").json["tool_call_id"] == call
    missing = cli("inspect", one, "call_0")
    assert missing.code == 2
    assert "2 calls begin with" in one_line(missing) or "no call has" in one_line(missing)


def test_the_transcript_stands_in_order(cli: Cli, one: str) -> None:
    out = cli("sessions", "show", one).out
    places = [out.index(text) for text in ("> # do this", "Look.", "Bash echo `x`", "Done.", "[run finished]")]
    assert places == sorted(places)


def test_a_fork_is_a_session_of_its_own(cli: Cli, one: str) -> None:
    forked = cli("sessions", "fork", one, "--title", "copy").out.strip()
    assert forked != one
    before, after = (cli("inspect", s, "--json").json for s in (one, forked))
    assert [c["tool_call_id"] for c in before["calls"]] == [c["tool_call_id"] for c in after["calls"]]
    assert [c["asks"] for c in before["calls"]] == [c["asks"] for c in after["calls"]]
    assert after["evidence"] == []
    assert after["session"]["title"] == "copy"
    assert cli("verify", "--all").code == 0
    beyond = cli("sessions", "fork", one, "--at", "9999")
    assert beyond.code == 2
    early = cli("sessions", "fork", one, "--at", "1").out.strip()
    assert cli("inspect", early, "--json").json["calls"] == []


def test_rename_and_delete(cli: Cli, one: str) -> None:
    assert cli("sessions", "rename", one, "new \x1b[31mname").code == 0
    listed = cli("sessions", "list")
    assert "new ␛[31mname" in listed.out
    refused = cli("sessions", "delete", one, stdin=b"")
    assert refused.code == 2
    (cli.state / "outputs" / one).mkdir(parents=True)
    assert cli("sessions", "delete", one, "--yes").out == f"deleted {one}\n"
    assert cli("sessions", "list").out == "no sessions\n"
    assert list((cli.state / "outputs").iterdir()) == []


def test_an_export_is_every_public_event_as_it_is_stored(cli: Cli, one: str) -> None:
    lines = cli("sessions", "export", one).lines
    with sqlite3.connect(cli.state / "counterfoil.db") as db:
        stored = [json.loads(row[0]) for row in db.execute("select public from events order by place")]
    assert [line["event"] for line in lines] == stored
    target = cli.root / "out.json"
    assert cli("sessions", "export", one, "--format", "json", "-o", str(target)).out == ""
    assert json.loads(target.read_text())["session"]["session_id"] == one
    unwritable = cli("sessions", "export", one, "-o", "/nowhere/x")
    assert unwritable.code == 2
    assert "can't be written" in one_line(unwritable)


def test_markdown_cannot_be_broken_out_of(cli: Cli) -> None:
    evil = "```\n# not a heading\n````"
    script = cli.script({"calls": [bash(f"printf '%s' '{evil}'")]}, SAY)
    cli("run", evil, "--script", script, "--mode=bypass")
    text = cli("sessions", "export", "last", "--format", "markdown").out
    fence = ""
    headings = []
    for line in text.splitlines():
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(ticks) >= 3 and line.count("`") == len(ticks):
            fence = ticks
        elif fence and line == fence:
            fence = ""
        elif not fence and line.startswith("#"):
            headings.append(line.split()[1].strip(":"))
    assert headings[1:] == ["Prompt", "Call", "Answer"]


def test_a_changed_row_is_named(cli: Cli, one: str) -> None:
    assert "intact" in cli("verify", one).out
    with sqlite3.connect(cli.state / "counterfoil.db") as db:
        place = db.execute("select place from events where kind='user.prompt'").fetchone()[0]
        db.execute(
            "update events set public=cast(replace(public, 'do this', 'do that') as blob) where place=?", (place,)
        )
    result = cli("verify", "--all")
    assert result.code == 1
    assert "DAMAGED at offset 3" in result.out
    (verdict,) = cli("verify", one, "--json").json
    assert (verdict["intact"], verdict["offset"]) == (False, 3)


def test_a_log_that_cannot_even_be_read_hides_no_other_one(cli: Cli, one: str) -> None:
    for title in ("two", "three"):
        cli("run", title, "--script", cli.script(SAY))
    three, two = (s["session_id"] for s in cli("sessions", "list", "--json").json if s["session_id"] != one)
    with sqlite3.connect(cli.state / "counterfoil.db") as db:
        (row,) = db.execute("select place from events where cast(public as text) like ?", (f"%{three}%",)).fetchone()
        db.execute("update events set recorded_at='then' where place=?", (row,))
        db.execute("update events set public=x'ff' where kind='user.prompt' and place < ?", (row,))
    result = cli("verify", "--all")
    assert result.code == 1 and result.err == ""
    found = dict(line.split(": ", 1) for line in result.out.splitlines())
    assert found[three].startswith("DAMAGED: ") and "row 1" in found[three]
    assert found[two].startswith("DAMAGED at offset ") and found[one].startswith("DAMAGED at offset ")
    assert [v["intact"] for v in cli("verify", "--all", "--json").json] == [False] * 3
    alone = cli("verify", three)
    assert alone.code == 1 and alone.err == "" and "DAMAGED" in alone.out


def test_private_ids_are_on_no_screen(cli: Cli) -> None:
    calls = [bash("true", "CANARY-PAIRING-1"), {"tool": "Read", "arguments": "{broken", "id": "CANARY-PAIRING-2"}]
    twice = {"calls": [bash("true", "CANARY-PAIRING-3"), bash("false", "CANARY-PAIRING-3")]}
    script = cli.script({"calls": calls}, {"attempts": [twice, SAY]})
    shown = [cli("run", "x", "--script", script, "--ask=wait", "--output", "jsonl")]
    shown.append(cli("asks"))
    shown.append(cli("resume", "last", "--script", script, "--answer=allow", "--output=json"))
    shown += [cli("inspect", "last"), cli("inspect", "last", "--json"), cli("sessions", "show", "last")]
    shown += [cli("sessions", "export", "last", "--format", f) for f in ("jsonl", "json", "markdown")]
    calls_shown = cli("inspect", "last", "--json").json["calls"]
    shown += [cli("inspect", "last", c["tool_call_id"]) for c in calls_shown]
    assert [c["status"] for c in calls_shown] == ["ok", "error"]
    assert not any("CANARY" in r.out + r.err for r in shown)


def test_config_check_explains_each_value(cli: Cli) -> None:
    path = cli.user_config('[model]\nname = "m"\n[permissions]\ndeny = ["WebFetch"]\n')
    result = cli("config", "check")
    assert result.code == 0
    assert f"{path}: read" in result.out
    assert f'"m"  ({path}:2)' in result.out
    assert f'"WebFetch"  ({path}:4)' in result.out
    assert "($COUNTERFOIL_STATE_DIR)" in result.out
    assert cli("config", "check", "--json").json["problems"] == []


def test_a_projects_own_wishes_are_ignored_aloud(cli: Cli) -> None:
    (cli.workspace / ".counterfoil").mkdir()
    (cli.workspace / ".counterfoil/config.toml").write_text('[permissions]\nallow = ["Bash"]\ndeny = ["Write"]\n')
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    result = cli("run", "x", "--script", script, "--ask=deny")
    assert "warning: " in result.err
    assert "1 allow rule" in result.err and "counterfoil trust" in result.err
    assert not (cli.workspace / "made").exists()


def test_models_come_from_the_table_without_a_network(cli: Cli) -> None:
    found = cli("models", "--provider", "anthropic", "--offline", "--json").json
    assert any(m["context_window"] for m in found)
    assert all(m["price"] for m in found)
    assert cli("models", "--provider", "anthropic", "--offline").code == 0
