"""Content parts: what prompts, messages and results are made of."""

from __future__ import annotations

from counterfoil.events.base import Value
from counterfoil.identity import Digest


class TextPart(Value, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Valid Unicode text. `truncated_bytes` says how many bytes of the whole are not here."""

    text: str
    truncated_bytes: int = 0


class ImagePart(Value, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image, base64-encoded."""

    media_type: str
    data: str
    name: str | None = None


class FilePart(Value, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file that was named and not included, or that is stored beside the session."""

    path: str
    media_type: str | None = None
    size: int = 0
    digest: Digest | None = None


Part = TextPart | ImagePart | FilePart


def text_of(parts: tuple[Part, ...] | list[Part]) -> str:
    """The text of `parts`, one after the other; other parts stand as a label in brackets."""
    return "\n".join(_label(part) for part in parts)


def _label(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ImagePart):
        return f"[image {part.name or part.media_type}]"
    return f"[file {part.path}]"


def text_parts(text: str) -> tuple[Part, ...]:
    """One text part, or none for the empty text."""
    return (TextPart(text=text),) if text else ()


__all__ = ["FilePart", "ImagePart", "Part", "TextPart", "text_of", "text_parts"]
