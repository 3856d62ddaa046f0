"""Counterfoil: an agent harness whose engine owns the identity of everything that happens to a call."""

__version__ = "0.1.0"
