const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
const updatedInput = { ...event.tool_input, command: "echo safely" };
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput } }));
