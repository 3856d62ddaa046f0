"""A scrollback as one HTML page that needs nothing else. Pure."""

from counterfoil.scrollback.page.document import document

__all__ = ["document"]
