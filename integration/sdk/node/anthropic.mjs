// Plays the scenes with @anthropic-ai/sdk, its options left as they are.
import Anthropic, { toFile } from "@anthropic-ai/sdk";
import { batch, both, play, run, say, tool, turns } from "./scene.mjs";

const model = "claude-sonnet-4-5";
const client = new Anthropic();

const ask = (content) => ({ model, max_tokens: 4096, system: "Be brief.", messages: [{ role: "user", content }] });
const work = (content) => ({
  ...ask(content),
  tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema }],
});

const whole = (request) => client.messages.create(request);

async function streamed(request) {
  const stream = client.messages.stream(request);
  let events = 0;
  for await (const _ of stream) events++;
  say("events", events);
  return stream.finalMessage();
}

// converse goes on until the model calls no tool.
const converse = (request, call) =>
  turns(async () => {
    const message = await call(request);
    say("message", message.id, message.stop_reason, message.usage, message.content);
    const results = message.content
      .filter((block) => block.type === "tool_use")
      .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: run(block.name, block.input) }));
    request.messages.push({ role: "assistant", content: message.content });
    if (results.length > 0) request.messages.push({ role: "user", content: results });
    return results.length > 0;
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
  thinking: (prompt) =>
    converse({ ...work("thoughtful: " + prompt), thinking: { type: "enabled", budget_tokens: 1024 } }, streamed),
  count: async (content) => {
    say("count", await client.messages.countTokens({ model, messages: [{ role: "user", content }] }));
  },
  models: async () => {
    for await (const m of client.models.list()) say("model", m);
  },
  upload: async (prompt) => {
    const file = await toFile(Buffer.from(prompt + "\n"), "prompt.txt", { type: "text/plain" });
    say("file", await client.beta.files.upload({ file }));
  },
  retry: async (prompt) => {
    for (const status of [429, 500]) {
      const message = await client.messages.create(ask(`${prompt}, but fail once with ${status}`));
      say("message", message.id, message.content);
    }
  },
  batch: (prompt) =>
    batch(prompt, async (part) => {
      const message = await client.messages.create(ask(part));
      return [message.id, message.content];
    }),
});
