// Registers a test for each recording below a path with whichever runner is given; `tapedeck test` replays them.
import { execFile, execFileSync } from "node:child_process";
import { relative } from "node:path";

const missing =
  "tapedeck is not there: put it into PATH with `go install github.com/tapedeck-dev/tapedeck/cmd/tapedeck@latest`, " +
  "or name its file in the variable TAPEDECK";

// The longest time that a timer of Node can wait: how long a replay may take says tapedeck (--timeout, tapedeck.yaml).
const timeout = 2 ** 31 - 1;

export function recordings(test, path, { args = [] } = {}) {
  for (const found of list(path)) {
    test(relative(path, found.path) || found.path, { timeout }, async (context) => {
      const { lines, why } = await replay(found.path, args);
      const results = lines.slice(0, -1);
      const text = results.filter((r) => r.status !== "faithful").map(describe).join("\n\n");
      const nothing = results.length > 0 && results.every((r) => r.status === "skipped" || (r.status === "no-jail" && !args.includes("--strict")));
      if (nothing) return context.skip(text);
      if (lines.at(-1)?.exit !== 0) throw red(text || why);
    });
  }
}

// describe says of a result what does not hold, for people.
function describe({ status, why = "", first = "", stderr = "" }) {
  return [`${status}: ${why}`, first, stderr].filter(Boolean).join("\n");
}

// red is an error without a stack: where in this file it was thrown tells nobody anything.
function red(text) {
  const error = new Error(text);
  error.stack = `Error: ${text}`;
  return error;
}

function list(path) {
  try {
    const out = execFileSync(program(), ["test", "--list", "--json", path], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    return parse(out);
  } catch (error) {
    throw red(error.code === "ENOENT" ? missing : error.stderr?.trim() || error.message);
  }
}

// replay tries one path. Its promise fails only where tapedeck cannot be started: what a replay says stands in its lines.
function replay(path, args) {
  return new Promise((done, fail) => {
    const options = { encoding: "utf8", maxBuffer: Infinity };
    execFile(program(), ["test", "--json", ...args, path], options, (error, stdout, stderr) => {
      if (error?.code === "ENOENT") return fail(red(missing));
      done({ lines: parse(stdout), why: stderr.trim() || error?.message });
    }).stdin.end();
  });
}

function parse(out) {
  return out.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

function program() {
  return process.env.TAPEDECK || "tapedeck";
}
