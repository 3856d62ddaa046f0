#!/bin/bash
cat >/dev/null
echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer",
  "permissionDecisionReason": "needs the night shift"}}'
