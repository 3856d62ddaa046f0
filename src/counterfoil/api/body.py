"""The body of an HTTP request: bounded in size and in time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from counterfoil.errors import TooMuch, TooSlow, UsageError

BODY_TIME = 30.0
"""Seconds in which a request's body must have come."""


async def read_body(request: Request, most: int) -> bytes:
    """The body.

    Raises `TooMuch` for one of more than `most` bytes, `TooSlow` for one that doesn't come in time, `UsageError` for
    one whose sender went away.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIME):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise TooMuch(f"the body is larger than {most} bytes", hint="send less")
    except ClientDisconnect as fault:
        raise UsageError("the body broke off") from fault
    except TimeoutError as fault:
        raise TooSlow(f"the body didn't come within {BODY_TIME:g} s", hint="send it again") from fault
    return bytes(body)
