"""Configuration: every fault names file, line and field; merging keeps sources; nothing unsafe is ignored."""

from __future__ import annotations

import itertools
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.config import (
    Flags,
    Settings,
    api_key,
    chosen_provider,
    examine,
    explain,
    find_provider,
    load,
    merge,
    model_name,
    parse_tier,
    with_choice,
)
from counterfoil.config.lines import key_lines
from counterfoil.errors import ConfigError, UsageError


class Home:
    """A user's and a project's folder with configuration files in them."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "work"
        self.env = {
            "HOME": str(root / "home"),
            "COUNTERFOIL_OPERATOR_CONFIG": str(root / "operator.toml"),
        }
        self.operator = root / "operator.toml"
        self.user = root / "home/.config/counterfoil/config.toml"
        self.project = root / "work/.counterfoil/config.toml"
        for file in (self.user, self.project):
            file.parent.mkdir(parents=True)

    def load(self, flags: Flags | None = None, **env: str) -> Settings:
        return load(self.workspace, self.env | env, flags or Flags())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[model]\nname = 3\n", "f.toml:2: model.name: expected `str`, got `int`"),
        ('\n[model]\nprovidr = "x"\n', "f.toml:3: model.providr: is not a known field"),
        ("[modle]\n", "f.toml:1: modle: is not a known field"),
        ('[providers.a]\nwire = "grpc"\n', "f.toml:2: providers.a.wire: 'grpc' is not a choice"),
        ('[providers]\na = { wire = "openai",\n', "f.toml:"),
        ('[providers.a]\nwire = "openai"\napi_key = "sk-1"\n', "f.toml:3: providers.a.api_key: keys are never read"),
        ('[providers.a]\napi_key_env = "sk-1"\n', "f.toml:2: providers.a.api_key_env: is not the name of"),
        ('[providers.a.headers]\nAuthorization = "B x"\n', "f.toml:1: providers.a.headers: Authorization would hold"),
        ('[permissions]\ndeny = ["Bash(rm *"]\n', "f.toml:2: permissions.deny: rule 'Bash(rm *': the closing"),
        ('[permissions]\nmode = "yolo"\n', "f.toml:2: permissions.mode: 'yolo' is not a choice"),
        ("[limits]\nmax_turns = -1\n", "f.toml:2: limits.max_turns: expected `int` >= 0"),
        ("[limits]\nmax_turns = true\n", "f.toml:2: limits.max_turns: expected `int`, got `bool`"),
        ("model = 3\n", "f.toml:1: model: must be a table, not an integer"),
        ("providers = 3\n", "f.toml:1: providers: must be a table of tables, not an integer"),
        ("[model\n", "f.toml:1: is not valid TOML"),
    ],
)
def test_each_fault_names_file_line_and_field(text: str, expected: str) -> None:
    (problem,) = parse_tier("user", "f.toml", text.encode()).problems
    assert str(problem).startswith(expected)
    assert "sk-1" not in str(problem) + problem.hint


def test_all_faults_of_a_file_are_found_at_once_and_close_names_are_offered() -> None:
    tier = parse_tier("user", "f", b'[model]\nproviderr = "x"\nname = 1\n[limits]\nmax_turn = 2\n')
    assert [p.source.line for p in tier.problems] == [2, 3, 5]
    assert [p.hint for p in tier.problems][::2] == ["did you mean `provider`?", "did you mean `max_turns`?"]


def test_bytes_that_are_no_text_are_a_fault_with_a_line() -> None:
    (problem,) = parse_tier("user", "f", b'[ui]\nnotices = "\xff"\n').problems
    assert str(problem) == "f:2: is not UTF-8"


def test_later_tiers_win_and_each_value_knows_its_source(home: Home) -> None:
    home.operator.write_text('[model]\nname = "one"\neffort = "low"\n')
    home.user.write_text('[model]\nname = "two"\nprovider = "mine"\n\n[providers.mine]\nwire = "openai_chat"\n')
    settings = home.load(Flags(model="four"), COUNTERFOIL_MODEL="three")
    assert (settings.model.name, settings.model.effort, settings.model.provider) == ("four", "low", "mine")
    assert str(settings.sources["model.name"]) == "--model"
    assert str(settings.sources["model.effort"]) == f"{home.operator}:3"
    assert str(settings.sources["providers.mine.wire"]) == f"{home.user}:6"
    assert str(home.load(COUNTERFOIL_MODEL="three").sources["model.name"]) == "$COUNTERFOIL_MODEL"


def test_deny_rules_of_all_tiers_add_up(home: Home) -> None:
    home.operator.write_text('[permissions]\ndeny = ["WebFetch"]\n')
    home.user.write_text('[permissions]\ndeny = ["mcp__x__*"]\nallow = ["Bash"]\n')
    home.project.write_text('[permissions]\ndeny = ["Bash"]\n')
    settings = home.load(Flags(deny=("Write",), allow=("Edit",)))
    assert [r.pattern for r in settings.permissions.deny] == ["WebFetch", "mcp__x__*", "Bash", "Write"]
    assert [r.pattern for r in settings.permissions.allow] == ["Bash", "Edit"]


def test_a_projects_file_only_denies_and_names_models(home: Home) -> None:
    home.project.write_text(
        '[model]\nname = "m"\nprovider = "p"\n'
        '[permissions]\nmode = "bypass"\nallow = ["Bash"]\ndeny = ["Write"]\n'
        '[providers.openai]\nbase_url = "https://elsewhere.example"\n'
    )
    settings = home.load()
    assert settings.model.name == "m"
    assert settings.model.provider == ""
    assert settings.providers == {}
    assert settings.permissions.mode == "default"
    assert settings.permissions.allow == ()
    assert [p.field for p in settings.problems] == [
        "",
        "model.provider",
        "permissions.mode",
        "providers.openai.base_url",
    ]
    assert settings.problems[0].text.startswith("this folder isn't trusted, so this is ignored: 1 allow rule;")
    assert not any(p.fatal for p in settings.problems)


def test_a_rule_that_cannot_be_kept_stops_everything_wherever_it_stands(home: Home) -> None:
    home.project.write_text('[permissions]\ndeny = ["TodoWrite(x)"]\n')
    with pytest.raises(ConfigError, match="no specifier that is known"):
        home.load()
    home.project.unlink()
    with pytest.raises(UsageError, match=r"--deny: rule 'Bash\(git \*'"):
        home.load(Flags(deny=("Bash(git *",)))


def test_one_error_says_how_many_more_there_are(home: Home) -> None:
    home.user.write_text("[limits]\nx = 1\ny = 2\nz = 3\n")
    with pytest.raises(ConfigError) as caught:
        home.load()
    assert str(caught.value).startswith(f"{home.user}:2: limits.x: is not a known field")
    assert "and 2 more" in str(caught.value)


def test_a_file_that_cannot_be_read_is_a_fault_and_a_missing_one_is_none(home: Home) -> None:
    assert home.load().problems == ()
    home.user.mkdir()
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        home.load()


def test_state_dir_is_absolute_and_knows_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    home.user.write_text('state_dir = "~/cf"\n')
    assert home.load().state_dir == Path("/home/x/cf")
    home.user.write_text('state_dir = "cf"\n')
    with pytest.raises(ConfigError, match="is not an absolute path"):
        home.load()
    home.user.write_text("")
    assert home.load(Flags(state_dir="cf")).state_dir == Path.cwd() / "cf"


def test_the_provider_is_the_one_that_is_set_or_that_is_plain(home: Home) -> None:
    assert chosen_provider(home.load(Flags(provider="openai")), {}) == "openai"
    assert chosen_provider(home.load(Flags(base_url="http://h/v1")), {}) == "openai_chat"
    assert chosen_provider(home.load(Flags(script="s.yaml")), {}) == "scripted"
    assert chosen_provider(home.load(), {"ANTHROPIC_API_KEY": "k"}) == "anthropic"
    with pytest.raises(ConfigError, match="isn't plain"):
        chosen_provider(home.load(), {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"})
    with pytest.raises(ConfigError, match="no provider is chosen"):
        chosen_provider(home.load(), {})


def test_an_unknown_provider_is_one_clear_line(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"no provider is called 'antropic'.*did you mean `anthropic`"):
        find_provider(home.load(), "antropic")


def test_a_base_url_given_on_the_command_line_is_for_the_chosen_provider(home: Home) -> None:
    home.user.write_text('[providers.mine]\nwire = "openai_chat"\nbase_url = "https://a.example/v1"\n')
    settings = with_choice(home.load(Flags(base_url="http://127.0.0.1:1/v1", provider="mine")), {})
    assert find_provider(settings, "mine").base_url == "http://127.0.0.1:1/v1"
    assert find_provider(settings, "openai").base_url == ""


@pytest.mark.parametrize("url", ["ftp://h", "h:1", "http://", "http://u:p@h", "http://h/?x=1", "http://h:99999", ""])
def test_a_base_url_that_is_none_is_refused(home: Home, url: str) -> None:
    with pytest.raises(UsageError):
        home.load(Flags(base_url=url))


def test_keys_come_from_the_environment_alone(home: Home) -> None:
    openai = find_provider(home.load(), "openai")
    assert api_key(openai, {"OPENAI_API_KEY": " k \n"}) == "k"
    with pytest.raises(ConfigError, match="needs a key"):
        api_key(openai, {})
    local = find_provider(with_choice(home.load(Flags(base_url="http://h/v1")), {}), "openai_chat")
    assert api_key(local, {}) is None


def test_a_model_is_chosen_or_asked_for(home: Home) -> None:
    with pytest.raises(ConfigError, match="no model is chosen"):
        model_name(home.load(Flags(provider="openai")))
    assert model_name(with_choice(home.load(Flags(script="s.yaml")), {})) == "scripted"


def test_the_report_lists_files_values_sources_and_problems(home: Home) -> None:
    home.user.write_text('[permissions]\ndeny = ["Bash"]\n[ui]\nnotices = "all"\n[limits]\nx = 1\n')
    report = explain(*examine(home.workspace, home.env))
    assert [(f.tier, f.read) for f in report.files] == [("operator", False), ("user", True), ("project", False)]
    rows = {row.field: (row.value, row.source) for row in report.values}
    assert rows["permissions.deny"] == ("Bash", f"{home.user}:2")
    assert rows["ui.notices"] == ("all", f"{home.user}:4")
    assert rows["limits.max_turns"] == (250, "default")
    assert [p.fatal for p in report.problems] == [True]


def test_each_rule_of_a_long_list_has_its_own_line_and_each_bad_one_its_own_fault() -> None:
    text = b'[permissions]\ndeny = [\n  "Bash(rm *)",  # never\n  "Read(!x)",\n  "Edit", "Bash()",\n]\n'
    tier = parse_tier("user", "f", text)
    assert [(a.value, a.source.line) for a in tier.assignments] == [(["Bash(rm *)"], 3), (["Edit"], 5)]
    assert [p.source.line for p in tier.problems] == [4, 5]


def test_merging_is_pure() -> None:
    tier = parse_tier("user", "f", b'[providers.openai]\ntimeout = 3\n[permissions]\ndeny = ["Bash"]\n')
    first, second = merge([tier], Path("/s")), merge([tier], Path("/s"))
    assert first == second
    assert first.providers["openai"].wire == "openai"
    assert first.providers["openai"].timeout == 3


# ---- lines ------------------------------------------------------------------------------------------------------


def test_lines_are_found_in_every_shape_of_key() -> None:
    text = (
        '# [not]\na.b.c = 1\n\'q k\' = """\n[x]\ny = 1\n"""\n[t."u.v"]\nl = [\n  1, # ]\n  \'[w]\',\n]\n'
        "i = { j = 1, k = { m = 2 } }\n[[arr]]\nz = 'a # b'\n"
    )
    found = key_lines(text)
    assert {path: line for path, line in found.items() if len(path) > 0} == {
        ("a",): 2,
        ("a", "b"): 2,
        ("a", "b", "c"): 2,
        ("q k",): 3,
        ("t",): 7,
        ("t", "u.v"): 7,
        ("t", "u.v", "l"): 8,
        ("t", "u.v", "l", "[0]"): 9,
        ("t", "u.v", "l", "[1]"): 10,
        ("t", "u.v", "i"): 12,
        ("t", "u.v", "i", "j"): 12,
        ("t", "u.v", "i", "k"): 12,
        ("t", "u.v", "i", "k", "m"): 12,
        ("arr",): 13,
        ("arr", "z"): 14,
    }


_keys = st.sampled_from(["a", "b", "c-1", '"d e"', "'f.g'"])
_values = st.sampled_from(
    ["1", "true", '"x = [1]"', "'#'", '[1, [2, "]"]]', '"""\n[a]\nb = 1\n"""', "'''\nc = 2\n'''", "{ a = 1, b = '}' }"]
)


@given(st.lists(st.tuples(_keys, _values, st.booleans()), max_size=8))
def test_every_key_that_tomllib_reads_has_a_line_that_names_it(items: list[tuple[str, str, bool]]) -> None:
    lines: list[str] = []
    for n, (key, value, table) in enumerate(items):
        lines += [f"[t{n}.{key}]"] if table else []
        lines += [f"{key}{n if key[0] not in chr(34) + chr(39) else ''} = {value} # x", ""]
    text = "\n".join(lines)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = key_lines(text)
    split = text.split("\n")
    for path in itertools.islice(_paths(tree, ()), 200):
        assert path[-1] in split[found[path] - 1]


def _paths(tree: dict[str, object], above: tuple[str, ...]) -> list[tuple[str, ...]]:
    out = []
    for key, value in tree.items():
        out.append((*above, key))
        if isinstance(value, dict):
            out += _paths(value, (*above, key))
    return out


def test_a_file_that_would_never_end_is_a_fault(home: Home) -> None:
    os.mkfifo(home.project)
    with pytest.raises(ConfigError, match="can't be read: not a regular file"):
        home.load()
