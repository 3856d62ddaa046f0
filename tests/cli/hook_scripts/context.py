import json
import sys

event = json.load(sys.stdin)
said = {"hookEventName": event["hook_event_name"], "additionalContext": "The release branch is frozen."}
print(json.dumps({"hookSpecificOutput": said}))
