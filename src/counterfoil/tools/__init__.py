"""The built-in tools, and tools from Python functions."""

from counterfoil.tools.base import ToolOptions
from counterfoil.tools.function import ListedTools, function_tool
from counterfoil.tools.toolset import BuiltinTools

__all__ = ["BuiltinTools", "ListedTools", "ToolOptions", "function_tool"]
