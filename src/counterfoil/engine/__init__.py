"""The engine: the loop that drives a model through tools, and owns the identity of everything in it."""

from counterfoil.engine.context import NO_HOOKS, RunOutcome
from counterfoil.engine.engine import Engine
from counterfoil.engine.session import Session
from counterfoil.engine.settings import EngineSettings, NewSession
from counterfoil.engine.watch import Watch, WatchGap

__all__ = ["NO_HOOKS", "Engine", "EngineSettings", "NewSession", "RunOutcome", "Session", "Watch", "WatchGap"]
