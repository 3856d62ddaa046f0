"""The approvals inbox in the browser: pages that the server renders, and one small script that keeps them live."""

from counterfoil.api.ui.site import ui_routes

__all__ = ["ui_routes"]
