"""Text that a terminal only shows and never executes: control characters made visible."""

from counterfoil.events.visible import visible, visible_line

__all__ = ["visible", "visible_line"]
