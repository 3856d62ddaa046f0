"""People's own hooks: scripts, URLs, Python functions and questions to a model, run as their contract says."""

from counterfoil.hooks.definition import HookDefinition
from counterfoil.hooks.runner import Hooks

__all__ = ["HookDefinition", "Hooks"]
