#!/usr/bin/env python3
"""Rewrites the input of a command: it is run with a prefix."""

import json
import sys

event = json.load(sys.stdin)
arguments = dict(event["tool_input"])
arguments["command"] = "echo safely: " + arguments["command"]
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}}))
