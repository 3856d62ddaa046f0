"""The approvals inbox in the browser: pages that the server renders, and one small script that keeps them live."""

from counterfoil.api.ui.docs import docs_page
from counterfoil.api.ui.site import HEADERS as PAGE_HEADERS
from counterfoil.api.ui.site import ui_routes

__all__ = ["PAGE_HEADERS", "docs_page", "ui_routes"]
