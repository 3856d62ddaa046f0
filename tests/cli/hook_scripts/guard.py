import json
import sys

event = json.load(sys.stdin)
assert event["hook_event_name"] == "PreToolUse"
if "rm " in event["tool_input"]["command"]:
    print("removing is not allowed here", file=sys.stderr)
    sys.exit(2)
