"""Tables: 80 columns, whole ids, nothing that a terminal would act on."""

from __future__ import annotations

import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.cli import details, render, wording
from counterfoil.cli.layout import Cell, Column, Row, lay_out
from counterfoil.identity import Digest, HookID, RandomIds, Revision, SessionID, ToolCallID
from counterfoil.scrollback import AskView, CallView, Source, visible, visible_line

IDS = RandomIds()
ROOT = SessionID("ses_1")
EVIL = "\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202e\u2028\x00 a\tb\nc" + "x" * 200 + "宽" * 50


def view(**fields: Any) -> CallView:
    values: dict[str, Any] = {
        "tool_call_id": IDS.call(),
        "origin_session_id": ROOT,
        "source": Source(session_id=ROOT),
        "turn": 1,
        "position": 0,
        "tool": "Bash",
        "arguments": {"command": "echo hi"},
        "arguments_digest": Digest("d"),
    }
    return CallView(**(values | fields))


def record(severity: ev.Severity, message: str = "") -> ev.HookRecord:
    return ev.HookRecord(
        hook_id=HookID(IDS.hook()),
        revision=Revision(1),
        phase="PreToolUse",
        origin_session_id=ROOT,
        definition=ev.Definition(name="h"),
        outcome="notice",
        severity=severity,
        message=message,
    )


def asked(verdict: ev.Verdict, name: str, call: ToolCallID) -> AskView:
    ask = ev.Ask(
        ask_id=IDS.ask(),
        origin_session_id=ROOT,
        tool_call_id=call,
        tool="T",
        arguments={},
        arguments_digest=Digest("d"),
        reason=EVIL,
    )
    receipt = ev.Receipt(
        ask_id=ask.ask_id,
        origin_session_id=ROOT,
        tool_call_id=call,
        verdict=verdict,
        decided_by=ev.Principal(kind="local", name=name),
        decided_at=1,
        arguments_digest=Digest("d"),
        note=EVIL,
    )
    return AskView(ask=ask, state="settled", receipt=receipt)


def rich_calls() -> list[CallView]:
    first = IDS.call()
    return [
        view(
            tool_call_id=first,
            tool="mcp__some_server__" + EVIL,
            arguments={"file_path": EVIL},
            effective={"file_path": EVIL + "!"},
            state="finished",
            status="interrupted",
            executed="unknown",
            duration_ms=1_234_567,
            records=(record("conflict"), record("warning", EVIL), record("warning"), record("benign")),
            asks=(asked("withhold", "somebody@a-long-domain.example", first),),
            result=ev.text_parts(EVIL),
        ),
        view(tool="Read", arguments={}, state="asked"),
        view(tool_call_id=ToolCallID("call_old_" + "0" * 32), problem="no JSON", state="held"),
    ]


def width_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def dangerous(text: str) -> set[str]:
    return {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs"))}


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_table_of_calls_fits_and_cuts_no_id(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    calls = rich_calls()
    render.print_calls(calls)
    out = capsys.readouterr().out
    assert max(map(width_of, out.splitlines())) <= columns
    assert all(c.tool_call_id in out.splitlines() for c in calls)
    assert dangerous(out) == set()
    for word in ("interrupted", "unknown", "1234567", "1 conflict", "withhold"):
        assert word in out


@given(
    st.lists(st.tuples(*[st.text(st.sampled_from("ab宽 -é"), max_size=60)] * 4), max_size=5),
    st.integers(60, 130),
)
def test_no_layout_is_wider_than_it_may_be_and_only_growing_columns_are_cut(
    rows: list[tuple[str, str, str, str]], width: int
) -> None:
    columns = [Column(title="a", grows=True), *(Column(title=t) for t in "bcd")]
    lines = lay_out(columns, [Row(cells=[Cell(t) for t in row]) for row in rows], width)
    texts = ["  ".join(cell.text for cell in line) for line in lines]
    assert max(map(width_of, texts)) <= width
    for number in (1, 2, 3):
        whole = "".join(line[number].text for line in lines[1:])
        assert whole.replace(" ", "") == "".join(row[number] for row in rows).replace(" ", "")


def test_everything_about_one_call_is_shown_and_nothing_acts_on_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for call in rich_calls():
        details.print_call(call)
    out = capsys.readouterr().out
    assert dangerous(out) <= {"\t"}
    assert "1 ms" not in out
    for word in ("conflict: h (PreToolUse) notice", "effective arguments", "withhold (once) by somebody@"):
        assert word in out


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def printed(**env: str) -> str:
        out = Terminal()
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stdout", out)
        render.print_calls(rich_calls())
        monkeypatch.undo()
        return out.getvalue()

    assert "\x1b[" in printed()
    assert "\x1b" not in printed(NO_COLOR="1")
    assert "\x1b" not in printed(TERM="dumb")


def test_evidence_is_counted_most_severe_first() -> None:
    call = rich_calls()[0]
    assert wording.evidence(call) == "1 conflict, 2 warning, 1 benign, changed"
    assert [r.severity for r in wording.sorted_records(call)] == ["conflict", "warning", "warning", "benign"]
    assert wording.approval(rich_calls()[1]) == "-"


def test_invisible_and_acting_characters_are_made_visible() -> None:
    assert dangerous(visible(EVIL)) <= {"\t"}
    assert dangerous(visible_line(EVIL)) == set()
    assert visible("a\r\nb\tc") == "a\nb\tc"
    assert visible_line("a\nb\tc") == "a␤b␉c"
    assert visible("\x1b[31m\x7f\x85\u2028") == "␛[31m␡<U+0085><U+2028>"
