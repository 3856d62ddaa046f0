const fs = require("fs");
const file = JSON.parse(fs.readFileSync(0, "utf8")).tool_input.file_path;
fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace(/[ \t]+$/gm, ""));
