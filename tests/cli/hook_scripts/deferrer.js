JSON.parse(require("fs").readFileSync(0, "utf8"));
const said = { permissionDecision: "defer", permissionDecisionReason: "needs the night shift" };
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...said } }));
