import json
import sys

arguments = json.load(sys.stdin)["tool_input"] | {"command": "echo safely"}
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}}))
