import json
import sys

json.load(sys.stdin)
said = {"permissionDecision": "defer", "permissionDecisionReason": "needs the night shift"}
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}))
