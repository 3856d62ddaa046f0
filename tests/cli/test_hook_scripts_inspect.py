"""Scripts that follow the public contract, in Bash, Python and Node, run unchanged; what `inspect` shows of each."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Cli, bash

SCRIPTS = Path(__file__).parent / "hook_scripts"
PROGRAMS = {"sh": "bash", "py": "python3", "js": "node"}
WITHOUT_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
LANGUAGES = ["sh", "py", pytest.param("js", marks=WITHOUT_NODE)]

pytestmark = pytest.mark.parametrize("language", LANGUAGES)


def configure(cli: Cli, language: str, script: str, *phases: str, matcher: str | None = None) -> None:
    """The person's own settings, in the ecosystem's form, name a script of the workspace for these phases."""
    name = f"{script}.{language}"
    shutil.copy(SCRIPTS / name, cli.workspace / name)
    command = f'{PROGRAMS[language]} "$CLAUDE_PROJECT_DIR"/{name}'
    group: dict[str, Any] = {"hooks": [{"type": "command", "command": command}]}
    if matcher is not None:
        group["matcher"] = matcher
    folder = cli.root / "home" / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"hooks": {phase: [group] for phase in phases}}))


def run(cli: Cli, *turns: dict[str, Any], mode: str = "bypass", code: int = 0) -> None:
    script = cli.script(*turns, {"text": "Done."})
    done = cli("run", "go", "--script", script, "--mode", mode, "--compat-claude")
    assert done.code == code and "warning" not in done.err, done.err


def inspected(cli: Cli) -> tuple[str, str]:
    """The session, and its one call where it has one, as `inspect` shows them."""
    calls = cli("inspect", "last", "--json").json["calls"]
    shown = [cli("inspect", "last").out, *(cli("inspect", "last", c["tool_call_id"]).out for c in calls), ""]
    return normal(shown[0], cli), normal(shown[1], cli)


def normal(text: str, cli: Cli) -> str:
    """Names for what differs from run to run and from language to language; columns are one space apart."""
    text = text.replace(str(cli.workspace), "WORK")
    text = re.sub(r'(bash|python3|node) "\$CLAUDE_PROJECT_DIR"/(\w+)\.(sh|py|js)', r"run \2", text)
    text = re.sub(r"\b(ses|run|call|hook|ask)_[0-9A-Za-z]{20,}", r"\1_ID", text)
    text = re.sub(r"sha256:[0-9a-f]+", "DIGEST", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"\b\d+ ms\b", "N ms", text)
    text = re.sub(r"(?<=\S) {2,}", " ", text)
    return re.sub(r"^(  \S.* (?:yes|no|unknown)) \d+ ", r"\1 N ", text, flags=re.MULTILINE)


def session(mode: str, row: str, *, parked: bool = False) -> str:
    """`inspect SESSION` of a session with one call."""
    turns, status, end = (1, "awaiting", "") if parked else (2, "completed", "\nrun finished: end_turn\n")
    return f"""ses_ID go
  workspace WORK
  model scripted scripted (mode {mode})
  status {status} (TIME)
  tokens {turns} in, {turns} out, {turns} requests

call state ran ms evidence approval
call_ID
  {row}
{end}"""


def one_call(tool: str, head: str, arguments: str, *sections: tuple[str, str]) -> str:
    """`inspect SESSION CALL`."""
    parts = "".join(f"\n{title}:\n  {text}\n" for title, text in (("arguments", arguments), *sections))
    return f"call_ID {tool}\n  origin ses_ID\n  turn 1, position 0, run run_ID\n{head}{parts}"


RAN = "  state ok, executed: yes\n  accepted TIME\n  started TIME, attempt 1\n  finished TIME, N ms\n"
NOT_RUN = "  state blocked, executed: no\n  accepted TIME\n  finished TIME, N ms\n"
ASKED = "  state asked, executed: -\n  accepted TIME\n"
REMOVES = '{\n    "command": "rm -rf x",\n    "description": "x"\n  }'
ECHOES = REMOVES.replace("rm -rf x", "echo hi")
NO_ASK = ("approval", "none was needed")


def test_a_guard_that_exits_2(cli: Cli, language: str) -> None:
    configure(cli, language, "guard", "PreToolUse", matcher="Bash")
    run(cli, {"calls": [bash("rm -rf x")]})
    record = "blocking: PreToolUse: run guard (PreToolUse) blocked; removing is not allowed here [hook_ID r1]"
    result = "Blocked by a hook: removing is not allowed here"
    assert inspected(cli) == (
        session("bypass", "Bash rm -rf x blocked no N 1 blocking -"),
        one_call("Bash", NOT_RUN, REMOVES, ("evidence", record), NO_ASK, ("result", result)),
    )


def test_a_guard_lets_the_rest_run_and_leaves_no_record(cli: Cli, language: str) -> None:
    configure(cli, language, "guard", "PreToolUse", matcher="Bash")
    run(cli, {"calls": [bash("echo hi")]})
    assert inspected(cli) == (
        session("bypass", "Bash echo hi ok yes N - -"),
        one_call("Bash", RAN, ECHOES, ("evidence", "none"), NO_ASK, ("result", "hi")),
    )


def test_a_formatter_after_edits(cli: Cli, language: str) -> None:
    configure(cli, language, "formatter", "PostToolUse", matcher="Write|Edit")
    write = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "one \ntwo\t\n"}}
    run(cli, {"calls": [write]}, mode="accept_edits")
    assert (cli.workspace / "a.txt").read_text() == "one\ntwo\n"
    arguments = '{\n    "file_path": "a.txt",\n    "content": "one \\ntwo\\t\\n"\n  }'
    result = "Wrote a.txt, a new file of 2 lines."
    assert inspected(cli) == (
        session("accept_edits", "Write a.txt ok yes N - -"),
        one_call("Write", RAN, arguments, ("evidence", "none"), NO_ASK, ("result", result)),
    )


def test_a_context_adder_at_the_start_and_with_each_prompt(cli: Cli, language: str) -> None:
    configure(cli, language, "context", "SessionStart", "UserPromptSubmit")
    run(cli)
    records = "".join(
        f"notable: no call: notable: {phase}: run context ({phase}) added_context; The release branch is frozen. "
        f"[hook_ID r{n}]\n"
        for n, phase in enumerate(("SessionStart", "UserPromptSubmit"), 1)
    )
    head = session("bypass", "").split("\ncall state")[0].replace("2", "1")
    shown, _ = inspected(cli)
    assert shown == f"{head}\nno calls\n\n{records}run finished: end_turn\n"


def test_an_input_rewriter(cli: Cli, language: str) -> None:
    configure(cli, language, "rewriter", "PreToolUse", matcher="Bash")
    run(cli, {"calls": [bash("rm -rf x")]})
    record = "notable: PreToolUse: run rewriter (PreToolUse) changed_input; changed the arguments [hook_ID r1]"
    diff = (
        '--- original\n  +++ effective\n  @@ -1,4 +1,4 @@\n   {\n  - "command": "rm -rf x",\n'
        '  + "command": "echo safely",\n     "description": "x"\n   }'
    )
    sections = (("effective arguments", diff), ("evidence", record), NO_ASK, ("result", "safely"))
    assert inspected(cli) == (
        session("bypass", "Bash echo safely ok yes N 1 notable, changed -"),
        one_call("Bash", RAN, REMOVES, *sections),
    )


@pytest.mark.parametrize(
    ("phase", "why"), [("PreToolUse", "it is harmless"), ("PermissionRequest", "hook PermissionRequest: run approver")]
)
def test_an_approver(cli: Cli, language: str, phase: str, why: str) -> None:
    configure(cli, language, "approver", phase, matcher="Bash")
    run(cli, {"calls": [bash("echo hi")]}, mode="default")
    record = f"benign: {phase}: run approver ({phase}) allowed; {why} [hook_ID r1]"
    assert inspected(cli) == (
        session("default", "Bash echo hi ok yes N 1 benign -"),
        one_call("Bash", RAN, ECHOES, ("evidence", record), NO_ASK, ("result", "hi")),
    )


def test_a_deferrer(cli: Cli, language: str) -> None:
    configure(cli, language, "deferrer", "PreToolUse", matcher="Bash")
    run(cli, {"calls": [bash("echo hi")]}, code=75)
    record = "notable: PreToolUse: run deferrer (PreToolUse) asked; deferred: needs the night shift [hook_ID r1]"
    approval = "ask_ID: needs the night shift\n  asked TIME: open"
    assert inspected(cli) == (
        session("bypass", "Bash echo hi asked - - 1 notable open", parked=True),
        one_call("Bash", ASKED, ECHOES, ("evidence", record), ("approval", approval)),
    )
