// Plays the scenes with ollama against the local server's own address, its options left as they are. It has no retries
// and no uploads.
import ollama from "ollama";
import { batch, both, play, run, say, tool, turns } from "./scene.mjs";

const model = "qwen3:4b";

const work = (content) => ({
  model,
  messages: [{ role: "user", content }],
  tools: [
    { type: "function", function: { name: tool.name, description: tool.description, parameters: tool.schema } },
  ],
});

async function whole(request) {
  const answer = await ollama.chat(request);
  say("answer", answer.created_at, answer.prompt_eval_count, answer.eval_count);
  return answer.message;
}

async function streamed(request) {
  const message = { role: "assistant", content: "", thinking: "", tool_calls: [] };
  let lines = 0;
  for await (const part of await ollama.chat({ ...request, stream: true })) {
    lines++;
    message.content += part.message.content;
    message.thinking += part.message.thinking ?? "";
    message.tool_calls.push(...(part.message.tool_calls ?? []));
    if (part.done) say("done", lines, part.created_at, part.prompt_eval_count, part.eval_count);
  }
  return message;
}

// converse goes on until the model calls no tool.
const converse = (request, call) =>
  turns(async () => {
    const message = await call(request);
    say("message", message);
    request.messages.push(message);
    const calls = message.tool_calls ?? [];
    for (const { function: f } of calls) {
      request.messages.push({ role: "tool", tool_name: f.name, content: run(f.name, f.arguments) });
    }
    return calls.length > 0;
  });

await play({
  conversation: async (prompt) => {
    const request = work(prompt);
    await converse(request, whole);
    request.messages.push({ role: "user", content: "now write second.txt" });
    await converse(request, whole);
  },
  "side-by-side": (prompt) => converse(work(both(prompt)), streamed),
  stream: (prompt) => converse(work("streamed: " + prompt), streamed),
  thinking: (prompt) => converse({ ...work("thoughtful: " + prompt), think: true }, streamed),
  embed: async (prompt) => {
    say("embedding", await ollama.embed({ model: "nomic-embed-text", input: [prompt, "a second text"] }));
  },
  models: async () => say("models", await ollama.list()),
  batch: (prompt) =>
    batch(prompt, async (content) => {
      const answer = await ollama.chat({ model, messages: [{ role: "user", content }] });
      return [answer.created_at, answer.message];
    }),
});
