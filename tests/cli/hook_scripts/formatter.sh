#!/bin/bash
file=$(sed -n 's/.*"file_path": *"\([^"]*\)".*/\1/p')
[ -f "$file" ] || exit 1
sed -i 's/[[:blank:]]*$//' "$file"
