"""Makes src/counterfoil/api/v1 from proto/. `--check` writes nothing and fails where the two differ."""

from __future__ import annotations

import importlib.resources
import re
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src" / "counterfoil" / "api" / "v1"
_IMPORT = re.compile(r"^(from|import) counterfoil\.v1\b", re.MULTILINE)


def generate() -> dict[str, str]:
    """The generated modules by file name. Their imports of each other are by the place that they have here."""
    sources = sorted((ROOT / "proto").rglob("*.proto"))
    include = importlib.resources.files("grpc_tools") / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        out = [f"--{kind}_out={folder}" for kind in ("python", "grpc_python", "pyi")]
        code = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{include}", *out, *map(str, sources)])
        if code:
            raise SystemExit(code)
        found = sorted(path for path in Path(folder).rglob("*_pb2*.py*"))
        made = {path.name: _IMPORT.sub(r"\1 counterfoil.api.v1", path.read_text()) for path in found}
    return {name: text for name, text in made.items() if not name.endswith("_grpc.py") or "Stub" in text}


def main() -> int:
    """Write, or compare."""
    made = generate() | {"__init__.py": '"""Generated from proto/ by `make proto`. Do not edit."""\n'}
    there = {path.name: path.read_text() for path in TARGET.glob("*.py*")} if TARGET.exists() else {}
    if "--check" in sys.argv:
        different = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
        for name in different:
            print(f"src/counterfoil/api/v1/{name} isn't what proto/ makes: run `make proto`")
        return int(bool(different))
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in there.keys() - made.keys():
        (TARGET / name).unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
