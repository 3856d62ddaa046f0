#!/bin/bash
cat >/dev/null
cat <<'JSON'
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo safely", "description": "x"}}}
JSON
