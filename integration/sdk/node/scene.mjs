// What the Node clients share, as package scene does for those in Go: flags, the order of scenes, the one tool, printing.
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

// play runs the scenes that --scenes names, all by default: {name: async (prompt) => …}.
export async function play(scenes) {
  const { values: flags } = parseArgs({
    options: {
      prompt: { type: "string", default: "write hello.txt with the text marigold" },
      scenes: { type: "string", default: Object.keys(scenes).join(",") },
    },
  });
  for (const name of flags.scenes.split(",")) {
    console.log("== " + name);
    try {
      await scenes[name](flags.prompt);
    } catch (err) {
      console.error(name + ": " + err.message);
      process.exit(1);
    }
  }
}

// say prints one fact of an answer as JSON, which shows every character.
export const say = (name, ...values) => console.log(name + ": " + JSON.stringify(values));

// batch makes eight calls side by side, each with a prompt of its own, and prints what came in the order of the prompts.
export async function batch(prompt, call) {
  const calls = Array.from({ length: 8 }, (_, i) => call(`${prompt}, part ${i + 1}`));
  (await Promise.all(calls)).forEach((answer, i) => say("answer " + (i + 1), answer));
}

// The one tool: it writes a file below the working directory.
export const tool = {
  name: "write_file",
  description: "Writes a text into a file below the working directory.",
  schema: {
    type: "object",
    properties: {
      path: { type: "string", description: "Where the file goes, relative." },
      content: { type: "string" },
    },
    required: ["path", "content"],
  },
};

// run runs the tool and returns what the model is told.
export function run(name, args) {
  say("tool " + name, args);
  if (name !== tool.name || path.isAbsolute(args.path) || args.path.includes("..")) {
    throw new Error(`the model called ${name} for ${args.path}, want ${tool.name} for a local path`);
  }
  fs.writeFileSync(args.path, args.content);
  return `wrote ${Buffer.byteLength(args.content)} bytes`;
}

// both names two files instead of one, which the model then writes side by side.
export const both = (prompt) => prompt.replace("hello.txt", "one.txt and two.txt");

// turns bounds a conversation: step makes one call and returns whether the model wants another.
export async function turns(step) {
  for (let i = 0; i < 6; i++) {
    if (!(await step())) return;
  }
  throw new Error("the model calls tools for ever");
}
