"""The checker: reviews of calls and results by a model that has no other powers."""

from counterfoil.reviews.checker import Checker

__all__ = ["Checker"]
