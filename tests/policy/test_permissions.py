from __future__ import annotations

from typing import Any

import pytest

from counterfoil.policy.bash import shell_paths
from counterfoil.policy.learn import narrowest_rule
from counterfoil.policy.permissions import CallFacts, Decision, Rules, decide, parse_rule, read_denied
from counterfoil.policy.rules import RuleSource
from counterfoil.policy.shell import surely_read_only
from counterfoil.ports import PathUse, Targets
from tests.policy.lines import PLACE, bash

NONE = Rules()
READS = {"Read", "Glob", "Grep", "WebFetch"}


def at(path: str, *, write: bool = False, to: str | None = None) -> Targets:
    given = path if path.startswith("/") else f"/srv/space/{path}"
    resolved = given if to is None else to
    inside = resolved == "/srv/space" or resolved.startswith("/srv/space/")
    return Targets(paths=(PathUse(given=given, resolved=resolved, write=write, inside=inside),))


def ask(tool: str, targets: Targets, rules: Rules = NONE, mode: Any = "default", **more: Any) -> Decision:
    facts = CallFacts(tool=tool, read_only=tool in READS, targets=targets)
    return decide(facts, rules, mode, place=PLACE, **more)


@pytest.mark.parametrize(
    ("rule", "path", "covers"),
    [
        ("Read(.env)", ".env", True),
        ("Read(.env)", "a/b/.env", True),
        ("Read(.env)", ".env.local", False),
        ("Read(/.env)", ".env", True),
        ("Read(/.env)", "a/.env", False),
        ("Read(./.env)", ".env", True),
        ("Read(secrets/)", "secrets/a", True),
        ("Read(secrets)", "x/secrets/a/b", True),
        ("Read(/src/**/*.py)", "src/a/b.py", True),
        ("Read(src/*.py)", "src/a/b.py", False),
        ("Read(~/notes/**)", "/home/me/notes/a", True),
        ("Read(~/notes/**)", "/home/you/notes/a", False),
        ("Read(//etc/**)", "/etc/passwd", True),
        ("Read(//etc/**)", "etc/passwd", False),
        ("Read(.env)", ".ENV", True),
    ],
)
def test_path_rules_follow_gitignore(rule: str, path: str, covers: bool) -> None:
    verdict = ask("Read", at(path), Rules(deny=(rule,))).verdict
    assert (verdict == "deny") is covers


def test_r8_a_symlink_to_a_denied_file_is_denied_by_either_name() -> None:
    rules = Rules(deny=("Read(.env)",), allow=("Read",))
    assert ask("Read", at("harmless.txt", to="/srv/space/.env"), rules).verdict == "deny"
    assert ask("Read", at(".env", to="/srv/space/harmless.txt"), rules).verdict == "deny"


def test_r8_a_command_that_names_a_link_is_judged_by_what_it_leads_to() -> None:
    rules = Rules(deny=("Read(.env)",), allow=("Bash(cat *)",))
    assert "/srv/space/link" in shell_paths("cat link", PLACE)
    assert bash("cat link", rules).verdict == "allow"
    assert bash("cat link", rules, links={"/srv/space/link": "/srv/space/.env"}).verdict == "deny"


def test_r8_searches_are_told_which_files_to_leave_out() -> None:
    hidden = read_denied(Rules(deny=("Read(.env)", "Read(~/.ssh/**)")), PLACE)
    assert hidden("/srv/space/a/.env") and hidden("/home/me/.ssh/id") and not hidden("/srv/space/a.py")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".counterfoil/config.toml"])
def test_r10_protected_files_are_asked_for_in_accept_edits(path: str) -> None:
    decision = ask("Write", at(path, write=True), mode="accept_edits")
    assert decision.verdict == "ask" and "protected" in decision.reason
    assert ask("Write", at(path, write=True), mode="dont_ask").verdict == "deny"
    assert ask("Write", at(path, write=True), mode="bypass").verdict == "ask"
    assert ask("Write", at(path, write=True), Rules(allow=("Write", f"Edit(/{path})"))).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [".GIT/config", ".git./config", ".g\u200cit/config", "a/.claude/settings.json", "/home/me/.bashrc",
     "/home/me/.ssh/x", "/home/me/.config/gh/hosts.yml", ".envrc", "git~1/config", ".mcp.json", ".git"],
)  # fmt: skip
def test_protected_files_under_every_name(path: str) -> None:
    assert ask("Write", at(path, write=True), mode="bypass").verdict == "ask"
    link = at("plain", write=True, to=path if path.startswith("/") else f"/srv/space/{path}")
    assert ask("Write", link, mode="bypass").verdict == "ask"


def test_outside_the_workspace_only_a_rule_that_says_so_allows() -> None:
    assert ask("Read", at("/etc/hosts")).verdict == "ask"
    assert ask("Read", at("/etc/hosts"), Rules(allow=("Read",))).verdict == "ask"
    assert ask("Read", at("/etc/hosts"), Rules(allow=("Read(//etc/**)",))).verdict == "allow"
    link = at("/etc/hosts", to="/root/secret")
    assert ask("Read", link, Rules(allow=("Read(//etc/**)",))).verdict == "ask"


def test_edit_rules_hold_for_every_writing_tool() -> None:
    assert ask("Write", at("src/a", write=True), Rules(deny=("Edit(/src/**)",))).verdict == "deny"
    assert ask("Edit", at("src/a", write=True), Rules(deny=("Write(/src/**)",))).verdict == "deny"
    assert ask("Write", at("src/a", write=True), Rules(allow=("Edit(/src/**)",))).verdict == "allow"
    assert ask("Edit", at("src/a", write=True), Rules(allow=("Write(/src/**)",))).verdict == "ask"
    assert ask("Grep", at("src/a"), Rules(deny=("Read(/src/**)",))).verdict == "deny"


@pytest.mark.parametrize(
    ("allow", "host", "verdict"),
    [
        ("WebFetch(domain:example.com)", "example.com", "allow"),
        ("WebFetch(domain:example.com)", "EXAMPLE.com.", "allow"),
        ("WebFetch(domain:example.com)", "www.example.com", "ask"),
        ("WebFetch(domain:example.com)", "notexample.com", "ask"),
        ("WebFetch(domain:*.example.com)", "www.example.com", "allow"),
        ("WebFetch(domain:*.example.com)", "example.com", "ask"),
        ("WebFetch(domain:*.example.com)", "example.com.evil.org", "ask"),
        ("WebFetch", "example.com", "allow"),
        ("Read", "example.com", "ask"),
    ],
)
def test_domains(allow: str, host: str, verdict: str) -> None:
    assert ask("WebFetch", Targets(domain=host), Rules(allow=(allow,))).verdict == verdict


def test_a_denied_domain_wins_over_an_allowed_tool() -> None:
    rules = Rules(deny=("WebFetch(domain:*.example.com)",), allow=("WebFetch",))
    assert ask("WebFetch", Targets(domain="a.example.com"), rules).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "tool", "covers"),
    [
        ("mcp__github", "mcp__github__search", True),
        ("mcp__github", "mcp__githubber__search", False),
        ("mcp__github__*", "mcp__github__search", True),
        ("mcp__github__search", "mcp__github__search_all", False),
        ("mcp__*", "mcp__github__search", True),
    ],
)
def test_mcp_names(rule: str, tool: str, covers: bool) -> None:
    assert (ask(tool, Targets(), Rules(deny=(rule,))).verdict == "deny") is covers


def test_grants_allow_and_never_over_deny_ask_or_protected() -> None:
    grants = ("Bash(npm *)", "Edit(/**)")
    assert bash("npm test", Rules(), grants=grants).verdict == "allow"
    assert bash("npm test", Rules(deny=("Bash(npm *)",)), grants=grants).verdict == "deny"
    assert bash("npm test", Rules(ask=("Bash(npm *)",)), grants=grants).verdict == "ask"
    assert ask("Write", at(".git/x", write=True), grants=grants).verdict == "ask"


def test_the_reason_names_rule_source_and_part() -> None:
    rule = parse_rule("Bash(rm *)", RuleSource(tier="operator", place="/etc/counterfoil.toml", line=3))
    decision = bash("ls && rm -rf x", Rules(deny=(rule,)))
    assert decision.reason == "denied by rule Bash(rm *) (operator /etc/counterfoil.toml:3): rm -rf x"
    assert decision.rule == "Bash(rm *)"
    assert [(p.text, p.verdict) for p in decision.parts] == [("ls", "ask"), ("rm -rf x", "deny")]


def test_an_ask_for_a_substitution_alone_says_so() -> None:
    rules = Rules(allow=("Bash(echo *)", "Bash(date *)"))
    assert bash("echo $(date)", rules).only_substitution
    assert not bash("echo $(id)", rules).only_substitution
    assert not bash("echo $(date); eval x", rules).only_substitution


@pytest.mark.parametrize(
    ("command", "sure"),
    [
        ("ls -la", True),
        ("git log --oneline | head -3", True),
        ("cat a; pwd", True),
        ("find . -name '*.py'", True),
        ("git log 2>/dev/null", True),
        ("timeout 5 git status", True),
        ("git log --output=x", False),
        ("git commit -m m", False),
        ("find . -delete", False),
        ("ls > x", False),
        ("ls $(x)", False),
        ("echo $x", False),
        ("sort -o x y", False),
        ("uniq a b", False),
        ("less a", False),
        ("PATH=. ls", False),
        ("./ls", False),
        ("", False),
    ],
)
def test_surely_read_only(command: str, sure: bool) -> None:
    assert surely_read_only(command) is sure


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("npm test", "Bash(npm test)"),
        ("git log --oneline", "Bash(git log *)"),
        ("git push", "Bash(git push)"),
        ("echo 'a b'", "Bash(echo 'a b')"),
        ("echo '*'", "Bash(echo '*')"),
        ("pytest -k 'a or b'", "Bash(pytest -k 'a or b')"),
        ("npm test && ls", None),
        ("echo $(ls)", None),
        ("npm test > x", None),
        ("FOO=1 npm test", None),
        ("echo $X", None),
        ("python3 -c 1", None),
        ("git -c a=b log", None),
        ("sudo ls", None),
        ("cat ~/.ssh/id", None),
    ],
)
def test_the_narrowest_rule_for_a_command(command: str, rule: str | None) -> None:
    facts = CallFacts(tool="Bash", read_only=False, targets=Targets(command=command))
    assert narrowest_rule(facts, place=PLACE) == rule
    if rule:
        assert bash(command, Rules(), grants=(rule,)).verdict == "allow"
        assert bash(f"{command}; curl x", Rules(), grants=(rule,)).verdict == "ask"
        assert narrowest_rule(facts, rules=Rules(deny=(rule,)), place=PLACE) is None


def test_the_narrowest_rule_for_edits_domains_and_other_tools() -> None:
    def learned(tool: str, targets: Targets) -> str | None:
        return narrowest_rule(CallFacts(tool=tool, read_only=False, targets=targets), place=PLACE)

    assert learned("Edit", at("src/a/b.py", write=True)) == "Edit(/src/a/**)"
    assert learned("Write", at("b.py", write=True)) == "Edit(/b.py)"
    assert learned("Write", at(".git/config", write=True)) is None
    assert learned("Write", at("/etc/x", write=True)) is None
    assert learned("Write", at("src/a", write=True, to="/etc/x")) is None
    assert learned("WebFetch", Targets(domain="example.com")) == "WebFetch(domain:example.com)"
    assert learned("mcp__a__b", Targets()) == "mcp__a__b"
