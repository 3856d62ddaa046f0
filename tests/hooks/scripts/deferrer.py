#!/usr/bin/env python3
"""Puts a call off until somebody looks at it."""

import json
import sys

event = json.load(sys.stdin)
said = {"permissionDecision": "defer", "permissionDecisionReason": "needs the night shift"}
print(json.dumps({"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **said}}))
