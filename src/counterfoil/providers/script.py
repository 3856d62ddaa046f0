"""The script format: what a scripted model says, turn by turn. One format for demos, tests and the model server.

A script is a YAML or JSON file. `turns[n]` is what the model answers when n turns of its session came before:

    turns:
      - text: "I'll look."
        reasoning: "The file is near."
        calls: [{tool: Read, arguments: {file_path: "${WORKSPACE}/a.txt"}}]
      - attempts:                      # the first, second … request for this turn; the last repeats
          - error: {kind: rate_limited, retry_after: 0.01}
          - text: "Done."
    aside: "A summary."                # the answer to a request without tools
    end: "That was all."               # the answer after the last turn

`${NAME}` in any text is replaced where the reader gave a value for NAME, and left alone elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.errors import ConfigError
from counterfoil.events import TurnStop, Usage

DEFAULT_END = "The script has no more turns."


class ScriptPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the parts of a script: a field that isn't known is an error, so that a typo can't hide."""


class ScriptCall(ScriptPart, frozen=True, kw_only=True):
    """One call. `arguments` as text is sent as it stands, valid or not. `id`: the pairing id, made where absent;
    the empty id stands for a server that sends none.
    """

    tool: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None


class ScriptError(ScriptPart, frozen=True, kw_only=True):
    """A failure of the API. `status`, `headers` and `body` are for the model server alone."""

    kind: str = "overloaded"
    message: str = "the script says so"
    permanent: bool = False
    retry_after: float | None = None
    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None


class ScriptTurn(ScriptPart, frozen=True, kw_only=True):
    """One turn of the model. `attempts` stands instead of everything else.

    `chunks`: in how many pieces the text is streamed. `cut`: the stream ends in the middle, after the text and
    half of each call's arguments. `wait`: seconds before the answer. `hang`: no answer ever.
    `keep_alive` (comments between events), `slow` (seconds between pieces of a few bytes) and `raw` (a file with
    the exact bytes of a recorded stream, relative to the script) are for the model server alone.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptCall, ...] = ()
    usage: Usage | None = None
    stop: TurnStop | None = None
    chunks: int = 1
    attempts: tuple[ScriptTurn, ...] = ()
    error: ScriptError | None = None
    cut: bool = False
    wait: float = 0.0
    hang: bool = False
    keep_alive: bool = False
    slow: float = 0.0
    raw: str | None = None

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise ValueError("`chunks` is at least 1")
        if self.attempts and msgspec.structs.replace(self, attempts=()) != ScriptTurn():
            raise ValueError("`attempts` stands instead of the other fields")
        if any(attempt.attempts for attempt in self.attempts):
            raise ValueError("an attempt has no attempts of its own")

    def attempt(self, number: int) -> ScriptTurn:
        """What request `number` (0, 1, …) for this turn is answered with."""
        return self.attempts[min(number, len(self.attempts) - 1)] if self.attempts else self

    @property
    def stop_reason(self) -> TurnStop:
        """The stop reason as written, or the one that fits."""
        return self.stop or ("tool_use" if self.calls else "end_turn")


class ScriptBranch(ScriptPart, frozen=True, kw_only=True):
    """Other turns for a session whose first prompt holds the text `when`: a subagent, a team's member."""

    when: str
    turns: tuple[ScriptTurn, ...]


class Script(ScriptPart, frozen=True, kw_only=True):
    """A whole script. `pairing_prefix` begins the pairing ids that are made for calls without one."""

    turns: tuple[ScriptTurn, ...] = ()
    aside: str | None = None
    end: str = DEFAULT_END
    branches: tuple[ScriptBranch, ...] = ()
    pairing_prefix: str = "pair-"

    def turns_for(self, first_prompt: str) -> tuple[ScriptTurn, ...]:
        """The turns of a session that began with `first_prompt`."""
        return next((b.turns for b in self.branches if b.when in first_prompt), self.turns)

    def turn(self, number: int, attempt: int = 0, first_prompt: str = "") -> ScriptTurn:
        """The answer to request `attempt` for turn `number`, both from 0."""
        turns = self.turns_for(first_prompt)
        return turns[number].attempt(attempt) if number < len(turns) else ScriptTurn(text=self.end)

    def pairing_id(self, call: ScriptCall, turn: int, position: int) -> str:
        """The pairing id of a call: as written, or made from its place. Empty where the script says so."""
        return call.id if call.id is not None else f"{self.pairing_prefix}{turn}-{position}"


def load_script(path: Path, placeholders: Mapping[str, str] | None = None) -> Script:
    """Read a script file (`.json`, or YAML). Raises `ConfigError` that names the file and the field."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"script {path}: {error.strerror or error}", hint="check the path") from error
    return parse_script(data, str(path), placeholders, json=path.suffix == ".json", folder=path.parent)


def parse_script(
    data: bytes | str,
    name: str = "script",
    placeholders: Mapping[str, str] | None = None,
    *,
    json: bool = False,
    folder: Path | None = None,
) -> Script:
    """A script from its text. `folder`: what `raw` file names are relative to."""
    try:
        return script_from(_decode(data, json), placeholders, folder)
    except msgspec.ValidationError as error:
        raise ConfigError(f"script {name}: {error}", hint="see the script format in the documentation") from error
    except ValueError as error:
        first = " ".join(str(error).split())
        raise ConfigError(f"script {name}: not valid {'JSON' if json else 'YAML'}: {first}") from error


def script_from(value: Any, placeholders: Mapping[str, str] | None = None, folder: Path | None = None) -> Script:
    """A script from plain values. Raises `msgspec.ValidationError` that names the field."""
    script = msgspec.convert(_filled(value, placeholders or {}), Script)
    return script if folder is None else _rooted(script, folder)


def filled(script: Script, placeholders: Mapping[str, str]) -> Script:
    """`script` with its placeholders replaced."""
    return msgspec.convert(_filled(msgspec.to_builtins(script), placeholders), Script) if placeholders else script


def pieces(text: str, count: int) -> Iterable[str]:
    """`text` cut into at most `count` pieces of about one length, none empty."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _decode(data: bytes | str, json: bool) -> Any:
    if json:
        return msgspec.json.decode(data)
    import yaml

    try:
        return yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _filled(value: Any, placeholders: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in placeholders.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, placeholders) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, placeholders) for item in value]
    return value


def _rooted(script: Script, folder: Path) -> Script:
    """`script` with the names of its `raw` files made absolute."""

    def turn(t: ScriptTurn) -> ScriptTurn:
        raw = str(folder / t.raw) if t.raw is not None else None
        return msgspec.structs.replace(t, raw=raw, attempts=tuple(turn(a) for a in t.attempts))

    branches = tuple(ScriptBranch(when=b.when, turns=tuple(turn(t) for t in b.turns)) for b in script.branches)
    return msgspec.structs.replace(script, turns=tuple(turn(t) for t in script.turns), branches=branches)
