import json
import pathlib
import sys

file = pathlib.Path(json.load(sys.stdin)["tool_input"]["file_path"])
file.write_text("".join(line.rstrip() + "\n" for line in file.read_text().splitlines()))
