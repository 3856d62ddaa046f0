"""The tool with which the model, in plan mode, asks to carry out what it has planned."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.ports import ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, text_output


class PresentPlanArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What PresentPlan takes."""

    plan: Annotated[str, Meta(description="The whole plan, as Markdown.", min_length=1, max_length=50_000)]


class PresentPlan(BuiltinTool[PresentPlanArguments]):
    """In plan mode: show the finished plan to the person and ask to leave plan mode and carry it out."""

    name = "PresentPlan"
    arguments = PresentPlanArguments
    leaves_plan = True

    async def call(self, ctx: ToolContext, args: PresentPlanArguments) -> ToolOutput:
        """It runs only once the person has said yes; the engine then changes the mode."""
        return text_output("The plan is approved and plan mode is over: carry it out.")


__all__ = ["PresentPlan", "PresentPlanArguments"]
