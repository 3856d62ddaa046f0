"""A person at a real terminal: questions, streaming, Ctrl-C."""

from __future__ import annotations

import os

from tests.cli.pty import Person
from tests.cli.support import Cli, bash

SAY = {"text": "All is done.", "chunks": 3}


def test_a_question_shows_exactly_what_would_run_and_yes_runs_it(cli: Cli) -> None:
    command = "echo one\necho '\x1b[2K\x1b]0;x\x07' > made"
    person = Person("run", "x", "--script", cli.script({"text": "I will.", "calls": [bash(command)]}, SAY))
    question = person.sees("[y] allow  [n] deny  [e] deny with a note  > ")
    assert "Bash needs your approval: " in question
    assert "command: echo one" in question
    assert "echo '␛[2K␛]0;x␇' > made" in question
    assert not (cli.workspace / "made").exists()
    person.types("maybe\n")
    person.sees("> ")
    person.types("y\n")
    person.sees("● Bash echo one")
    person.sees("All is done.\n")
    assert person.leaves() == 0
    assert (cli.workspace / "made").exists()
    (call,) = cli("inspect", "last", "--json").json["calls"]
    assert call["asks"][0]["receipt"]["decided_by"]["kind"] == "local"


def test_no_and_a_note_reach_the_model_and_nothing_runs(cli: Cli) -> None:
    calls = [bash("touch one", "a"), bash("touch two", "b")]
    person = Person("run", "x", "--script", cli.script({"calls": calls}, SAY))
    person.sees("> ")
    person.types("n\n")
    person.sees("touch two")
    person.sees("with a note  > ")
    person.types("e\n")
    person.sees("note to the model > ")
    person.types("use the other file\n")
    assert person.leaves() == 0
    first, second = cli("inspect", "last", "--json").json["calls"]
    assert (first["status"], second["status"]) == ("denied", "denied")
    assert second["asks"][0]["receipt"]["note"] == "use the other file"
    assert "use the other file" in second["result"][0]["text"]
    assert list(cli.workspace.iterdir()) == []


def test_keys_typed_before_a_question_answer_nothing(cli: Cli) -> None:
    calls = [{"calls": [bash("sleep 1; echo > first", "a")]}, {"calls": [bash("touch second", "b")]}]
    person = Person("run", "x", "--script", cli.script(*calls, SAY))
    person.sees("with a note  > ")
    person.types("y\ny\ny\n")
    question = person.sees("touch second")
    assert "? Bash needs your approval" in question
    person.sees("with a note  > ")
    assert person.process.poll() is None
    person.types("n\n")
    assert person.leaves() == 0
    assert sorted(p.name for p in cli.workspace.iterdir()) == ["first"]


def test_the_end_of_input_at_a_question_parks_the_run(cli: Cli) -> None:
    person = Person("run", "x", "--script", cli.script({"calls": [bash("touch made")]}, SAY))
    person.sees("with a note  > ")
    person.types("\x04")
    assert person.leaves() == 75
    assert "counterfoil resume" in person.screen
    assert cli("asks", "--json").json[0]["state"] == "open"


def test_ctrl_c_at_a_question_withdraws_it(cli: Cli) -> None:
    person = Person("run", "x", "--script", cli.script({"calls": [bash("touch made")]}, SAY))
    person.sees("with a note  > ")
    person.types("\x03")
    assert person.leaves() == 130
    (call,) = cli("inspect", "last", "--json").json["calls"]
    assert (call["status"], call["executed"], call["asks"][0]["state"]) == ("cancelled", "no", "withdrawn")
    assert "Traceback" not in person.screen


def test_text_streams_once_and_the_answer_is_not_repeated(cli: Cli) -> None:
    person = Person(
        "run", "x", "--script", cli.script({"text": "First.", "calls": [bash("true")]}, SAY), "--mode=bypass"
    )
    assert person.leaves() == 0
    assert person.screen.count("All is done.") == 1
    assert person.screen.index("First.") < person.screen.index("● Bash true") < person.screen.index("All is done.")


def test_with_stdout_in_a_pipe_progress_is_on_the_terminal_and_the_answer_in_the_pipe(cli: Cli) -> None:
    ours, theirs = os.pipe()
    person = Person("run", "x", "--script", cli.script({"calls": [bash("true")]}, SAY), "--mode=bypass", stdout=theirs)
    os.close(theirs)
    assert person.leaves() == 0
    with os.fdopen(ours) as pipe:
        assert pipe.read() == "All is done.\n"
    assert "● Bash true" in person.screen


def test_the_models_text_cannot_act_on_the_terminal(cli: Cli) -> None:
    evil = {"text": "\x1b]0;owned\x07 text \x1b[2J\u202e", "chunks": 4}
    person = Person("run", "x", "--script", cli.script(evil), env={"NO_COLOR": "1"})
    assert person.leaves() == 0
    assert "\x1b" not in person.screen
    assert "␛]0;owned␇ text ␛[2J<U+202E>" in person.screen


def test_the_demo_asks_on_a_terminal(cli: Cli) -> None:
    person = Person("demo")
    person.sees("sh ./check.sh")
    person.sees("with a note  > ")
    person.types("s\n")
    shown = person.sees("[y] allow  [n] deny  [e] deny with a note  > ")
    assert shown.count("needs your approval") == 1, "what was learned for the session isn't asked again"
    assert "action review: concern (authority)" in shown, "a review's question learns no rule"
    person.types("y\n")
    held = person.sees("[y] release  [n] withhold  [e] withhold with a note  > ")
    assert "its result is held back" in held and "IGNORE" not in held
    person.types("n\n")
    assert "action review: the checker failed (provider_failure)" in person.sees("with a note  > ")
    person.types("y\n")
    assert person.leaves() == 0
    assert "turn rejected" in person.screen and "would learn: Bash(sh ./check.sh)" in person.screen
    assert "see the first session again: " in person.screen
    assert "counterfoil inspect ses_" in person.screen


def test_a_question_that_is_left_with_ctrl_d_ends_its_line(cli: Cli) -> None:
    person = Person("run", "x", "--script", cli.script({"calls": [bash("true")]}, SAY))
    person.sees("with a note  > ")
    person.types("\x04")
    assert person.leaves() == 75
    assert "with a note  > \ncounterfoil: parked: " in person.screen
