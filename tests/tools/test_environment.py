from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.tools.environment import looks_secret, scrubbed
from tests.tools.support import Bench


def test_harmless_names_pass_and_unknown_names_do_not() -> None:
    kept = scrubbed(
        {"PATH": "/bin", "LC_ALL": "C", "GOPATH": "/go", "MY_APP": "x", "BASH_ENV": "/x", "LD_PRELOAD": "x"}
    )
    assert {"PATH", "LC_ALL", "GOPATH"} <= kept.keys()
    assert not {"MY_APP", "BASH_ENV", "LD_PRELOAD"} & kept.keys()
    assert (kept["TERM"], kept["NO_COLOR"], kept["GIT_TERMINAL_PROMPT"], kept["PAGER"]) == ("dumb", "1", "0", "cat")


@pytest.mark.parametrize(
    "name", ["XDG_TOKEN", "LC_SECRET", "XDG_API_KEY", "XDG_AUTH", "XDG_PASSWORD", "XDG_CREDENTIALS"]
)
def test_names_that_look_secret_are_refused_even_with_an_allowed_prefix(name: str) -> None:
    assert name not in scrubbed({name: "x"})
    assert scrubbed({name: "x"}, extra=[name])[name] == "x"


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "a1B2" * 8,
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "http://user:pass@proxy.example:3128",
    ],
)
def test_values_that_look_secret_are_refused_under_any_name(value: str) -> None:
    assert looks_secret(value)
    assert "HTTPS_PROXY" not in scrubbed({"HTTPS_PROXY": value})


def test_ordinary_values_do_not_look_secret() -> None:
    assert not any(map(looks_secret, ["/usr/bin:/bin", "http://proxy:3128", "en_GB.UTF-8", "risk-free", "task-1"]))


async def test_a_command_does_not_see_the_secrets_of_its_parent(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "canary", "HOME": "/h", "ODD": "canary"}
    bench = Bench(tmp_path, environment=environment)
    text = await bench.text("Bash", command="env")
    assert "canary" not in text
    assert "TERM=dumb" in text
    assert "HOME=/h" in text
