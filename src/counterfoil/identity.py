"""The one place where ids, derivations and digests are made.

Every public id is opaque to clients: a prefix that keeps the namespaces apart, and either a time-ordered
unique value (26 characters of Crockford base 32 over a UUIDv7, RFC 9562) or the hex of a keyed digest.
No other module makes an id. A provider's own pairing id is never one of these and never becomes one.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NewType, Protocol

import msgspec

SessionID = NewType("SessionID", str)
RunID = NewType("RunID", str)
ToolCallID = NewType("ToolCallID", str)
HookID = NewType("HookID", str)
AskID = NewType("AskID", str)
Digest = NewType("Digest", str)
"""A digest as text: `blake2b:` and 32 hex digits."""
Offset = NewType("Offset", int)
"""Place of an event in one session's log: 1, 2, 3, … without gaps; 0 means "before the first"."""
START = Offset(0)
"""Before the first event."""
Fence = NewType("Fence", int)
"""The fencing token of a writer's lease: each new holder gets a higher one."""
Revision = NewType("Revision", int)

ReviewID = HookID
"""The review API's name for the same record: `HookID == ReviewID` (identity contract, section 3)."""

ReviewJob = Literal["action", "permission", "inbound"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 74
_STEP_SHIFT = 14
"""Leaves steps of 60 random bits where the clock stands still: a forked child steps from the same value elsewhere."""


class IdSource(Protocol):
    """Makes new ids. Injected, so that tests can tell beforehand what will be made."""

    def session(self) -> SessionID:
        """A new session id."""
        ...

    def run(self) -> RunID:
        """A new run id."""
        ...

    def call(self) -> ToolCallID:
        """A new id for one accepted invocation of a tool. Never returned twice."""
        ...

    def hook(self) -> HookID:
        """A new id for one published hook outcome."""
        ...

    def ask(self) -> AskID:
        """A new id for one question to a person."""
        ...


class _Uuid7:
    """UUIDv7 values as 26 characters, strictly increasing within one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def after_fork(self) -> None:
        """In a forked child: forget a lock that another thread of the parent may hold."""
        self._lock = threading.Lock()

    def __call__(self) -> str:
        ms = time.time_ns() // 1_000_000
        rand = int.from_bytes(os.urandom(10), "big") & ((1 << _RANDOM_BITS) - 1)
        with self._lock:
            value = (ms << _RANDOM_BITS) | rand
            if value <= self._last:
                value = self._last + 1 + (rand >> _STEP_SHIFT)
            self._last = value
        return _base32(_with_version(value))


def _with_version(value: int) -> int:
    """Spread 122 bits of time and chance over a UUIDv7, with its version and variant bits in place."""
    low = value & ((1 << 62) - 1)
    mid = (value >> 62) & 0xFFF
    ms = value >> _RANDOM_BITS
    return (ms << 80) | (0x7 << 76) | (mid << 64) | (0b10 << 62) | low


def _base32(value: int) -> str:
    """26 Crockford characters, most significant first, so that text order is time order."""
    return "".join([_PAIRS[(value >> shift) & 0x3FF] for shift in range(120, -1, -10)])


_unique = _Uuid7()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unique.after_fork)


class RandomIds:
    """The ordinary `IdSource`: globally unique, ordered by time."""

    def session(self) -> SessionID:
        return SessionID("ses_" + _unique())

    def run(self) -> RunID:
        return RunID("run_" + _unique())

    def call(self) -> ToolCallID:
        return ToolCallID("call_" + _unique())

    def hook(self) -> HookID:
        return HookID("hook_" + _unique())

    def ask(self) -> AskID:
        return AskID("ask_" + _unique())


def derive(tag: str, *parts: str) -> str:
    """32 hex digits over a domain tag and parts, each length-prefixed: no two inputs meet by concatenation."""
    h = hashlib.blake2b(digest_size=16)
    for part in (tag, *parts):
        data = part.encode("utf-8", "surrogatepass")
        h.update(len(data).to_bytes(8, "big"))
        h.update(data)
    return h.hexdigest()


def review_id(call: ToolCallID, job: ReviewJob) -> ReviewID:
    """The id of the one review record for this call and job."""
    return HookID("rev_" + derive("counterfoil/review/v1", call, job))


def legacy_call_id(session: SessionID, message: int, position: int) -> ToolCallID:
    """The id of a call in a session that was written before ids existed: its place, nothing else."""
    return ToolCallID("call_old_" + derive("counterfoil/legacy-call/v0", session, "v0", str(message), str(position)))


def bytes_digest(tag: str, data: bytes) -> Digest:
    """Digest of a byte string in the domain `tag`."""
    h = hashlib.blake2b(digest_size=16)
    head = tag.encode()
    h.update(len(head).to_bytes(8, "big") + head + data)
    return Digest("blake2b:" + h.hexdigest())


def arguments_digest(arguments: Mapping[str, Any]) -> Digest:
    """Digest of a call's arguments: over JSON with sorted keys, so equal objects have equal digests."""
    return bytes_digest("counterfoil/arguments/v1", msgspec.json.encode(arguments, order="sorted"))


def result_digest(parts: Sequence[Any]) -> Digest:
    """Digest of a result's content parts: over their JSON as the log has it."""
    return bytes_digest("counterfoil/result/v1", msgspec.json.encode(parts))


def reviewed_digest(job: ReviewJob, *seen: str) -> Digest:
    """Digest of all that one review saw, in order: a clearance holds for exactly this."""
    return Digest("blake2b:" + derive("counterfoil/reviewed/v1", job, *seen))


def chain_digest(previous: bytes, fields: Sequence[bytes]) -> bytes:
    """The 32-byte digest of one log row: over the previous row's digest and this row's fields.

    `previous` is empty for the first row. Each field is length-prefixed.
    """
    h = hashlib.blake2b(digest_size=32)
    h.update(len(previous).to_bytes(8, "big") + previous)
    for field in fields:
        h.update(len(field).to_bytes(8, "big"))
        h.update(field)
    return h.digest()
