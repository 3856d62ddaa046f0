const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
if (event.hook_event_name !== "PreToolUse") process.exit(1);
if (event.tool_input.command.includes("rm ")) {
  console.error("removing is not allowed here");
  process.exit(2);
}
