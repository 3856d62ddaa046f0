"""What the person set in the client and finds again: kept in a small file of the state directory."""

from __future__ import annotations

import json
from pathlib import Path

from counterfoil.errors import UsageError
from counterfoil.tui.link import NOTICES, Notices

UI_FILE = "terminal.json"


def read_kept(state_dir: Path) -> dict[str, str]:
    """All that was set; nothing where it can't be read: the configuration then holds."""
    try:
        kept = json.loads((state_dir / UI_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in kept.items()} if isinstance(kept, dict) else {}


def keep(state_dir: Path, name: str, value: str) -> None:
    """Keep one setting. Raises `UsageError` where the file can't be written."""
    file = state_dir / UI_FILE
    kept = read_kept(state_dir) | {name: value}
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_suffix(".new")
        part.write_text(json.dumps(kept), encoding="utf-8")
        part.replace(file)
    except OSError as fault:
        raise UsageError(f"{file} can't be written: {fault.strerror}") from fault


def notices_of(kept: dict[str, str]) -> Notices:
    """What was kept; anything that isn't known counts as the configuration's word."""
    return next((known for known in NOTICES if known == kept.get("notices")), "config")
