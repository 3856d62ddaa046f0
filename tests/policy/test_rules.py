from __future__ import annotations

import pytest

from counterfoil.policy.permissions import Rule, RuleError, Rules, RuleSource, parse_rule


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is not a tool name"),
        ("Bash(", "closing parenthesis is missing"),
        ("Bash)", "is not a tool name"),
        ("Bash()", "specifier is empty"),
        ("Bash(  )", "specifier is empty"),
        ("Bash(git 'log)", "the quote ' is not closed"),
        ("Bash(:*)", "there is no command"),
        ("Bash(git\nlog)", "control character"),
        ("Agent(x)", "takes no specifier that is known"),
        ("TodoWrite(x)", "takes no specifier that is known"),
        ("mcp__a__b(x)", "MCP tools take no specifier"),
        ("Read(!x)", "can't be negated"),
        ("Read(../x)", "can't hold `..`"),
        ("Read(~root/x)", "one's own home folder"),
        ("WebFetch(example.com)", "takes `domain:`"),
        ("WebFetch(domain:https://a.b/c)", "is not a domain"),
        ("WebFetch(domain:a*.b)", "is not a domain"),
        ("Bash (x)", "is not a tool name"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_an_error_that_names_it(text: str, fault: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rule(text)
    assert repr(text) in str(caught.value) and fault in str(caught.value)
    with pytest.raises(RuleError):
        Rules(deny=(text,))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Bash", "tool"),
        ("mcp__github", "tool"),
        ("mcp__github__*", "tool"),
        ("*", "tool"),
        ("Bash(git log *)", "command"),
        ("Bash(npm run test:*)", "command"),
        ("Bash(echo (a))", "command"),
        ("Read(.env)", "path"),
        ("Edit(~/notes/**)", "path"),
        ("Grep(//etc/**)", "path"),
        ("WebFetch(domain:*.example.com)", "domain"),
        ("WebFetch(domain:localhost)", "domain"),
    ],
)
def test_rules_are_parsed_once_and_keep_their_text(text: str, kind: str) -> None:
    rule = parse_rule(text)
    assert (rule.kind, rule.text) == (kind, text)


def test_a_reason_names_the_rule_and_where_it_came_from() -> None:
    rule = parse_rule("Bash(rm *)", RuleSource(tier="user", place="~/.config/counterfoil/config.toml", line=12))
    assert str(rule) == "Bash(rm *) (user ~/.config/counterfoil/config.toml:12)"
    assert isinstance(Rules(deny=(rule,)).deny[0], Rule)
