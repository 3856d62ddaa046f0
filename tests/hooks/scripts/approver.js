// Answers permission requests for harmless commands.
let text = "";
process.stdin.on("data", (piece) => (text += piece));
process.stdin.on("end", () => {
  const event = JSON.parse(text);
  if (event.tool_input.command === "echo hi") {
    const decision = { behavior: "allow" };
    console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PermissionRequest", decision } }));
  }
});
