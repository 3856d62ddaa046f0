"""The terminal client: screens and widgets over scrollback views."""
