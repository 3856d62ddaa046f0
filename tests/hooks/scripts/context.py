#!/usr/bin/env python3
"""Adds context to each prompt."""

import json
import sys

event = json.load(sys.stdin)
print(
    json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": event["hook_event_name"],
                "additionalContext": "The release branch is frozen.",
            }
        }
    )
)
