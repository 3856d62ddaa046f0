#!/bin/bash
cat >/dev/null
echo "The release branch is frozen."
