#!/bin/bash
input=$(cat)
case "$input" in *'"hook_event_name": "PreToolUse"'* | *'"hook_event_name":"PreToolUse"'*) ;; *) exit 1 ;; esac
case "$input" in *'rm '*) echo "removing is not allowed here" >&2; exit 2 ;; esac
