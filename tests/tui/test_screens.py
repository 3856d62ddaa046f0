"""Each screen and overlay as a picture, in three looks at two sizes.

`COUNTERFOIL_DRAW=1` draws them anew; look at what changed before you keep it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.tui.scenes import SCENES, picture

PICTURES = Path(__file__).parent / "pictures"
SIZES = [(80, 24), (120, 40)]
LOOKS = ["dark", "light", "plain"]


def lean(svg: str) -> str:
    """The picture without what is the same in all: fonts and the frame's names."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    return re.sub(r"terminal-\d+", "t", svg)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", SCENES)
async def test_a_screen_looks_as_it_did(
    name: str, size: tuple[int, int], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if look == "plain":
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    drawn = lean(await picture(name, size, theme="light" if look == "light" else "dark"))
    file = PICTURES / f"{name}-{size[0]}x{size[1]}-{look}.svg"
    if os.environ.get("COUNTERFOIL_DRAW"):
        PICTURES.mkdir(exist_ok=True)
        file.write_text(drawn, encoding="utf-8")
    assert drawn == file.read_text(encoding="utf-8"), f"{name} looks different: COUNTERFOIL_DRAW=1 draws it anew"
