const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
const additionalContext = "The release branch is frozen.";
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: event.hook_event_name, additionalContext } }));
