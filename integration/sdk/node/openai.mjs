// Plays the scenes with openai, its options left as they are: chat completions and responses.
import OpenAI, { toFile } from "openai";
import { batch, both, play, run, say, tool, turns } from "./scene.mjs";

const model = "gpt-4o";
const client = new OpenAI();

const ask = (content) => ({
  model,
  messages: [{ role: "system", content: "Be brief." }, { role: "user", content }],
});
const declared = { name: tool.name, description: tool.description, parameters: tool.schema };
const work = (content) => ({ ...ask(content), tools: [{ type: "function", function: declared }] });

const whole = (request) => client.chat.completions.create(request);

async function streamed(request) {
  const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  let chunks = 0;
  for await (const _ of stream) chunks++;
  say("chunks", chunks);
  return stream.finalChatCompletion();
}

// converse goes on until the model calls no tool.
const converse = (request, call) =>
  turns(async () => {
    const completion = await call(request);
    const { message, finish_reason } = completion.choices[0];
    say("completion", completion.id, completion.created, finish_reason, completion.usage, message.content);
    request.messages.push(message);
    const calls = message.tool_calls ?? [];
    for (const c of calls) {
      const content = run(c.function.name, JSON.parse(c.function.arguments));
      request.messages.push({ role: "tool", tool_call_id: c.id, content });
    }
    return calls.length > 0;
  });

// discuss does the same with the responses API; the client keeps the conversation.
function discuss(prompt, call) {
  const input = [{ role: "user", content: prompt }];
  return turns(async () => {
    const tools = [{ type: "function", strict: false, ...declared }];
    const response = await call({ model: "gpt-5", instructions: "Be brief.", input, tools });
    say("response", response.id, response.created_at, response.usage, response.output_text);
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === "function_call");
    for (const c of calls) {
      const output = run(c.name, JSON.parse(c.arguments));
      input.push({ type: "function_call_output", call_id: c.call_id, output });
    }
    return calls.length > 0;
  });
}

await play({
  conversation: async (prompt) => {
    const request = work(prompt);
    await converse(request, whole);
    request.messages.push({ role: "user", content: "now write second.txt" });
    await converse(request, whole);
  },
  "side-by-side": (prompt) => converse(work(both(prompt)), streamed),
  stream: (prompt) => converse(work("streamed: " + prompt), streamed),
  responses: (prompt) => discuss(prompt, (request) => client.responses.create(request)),
  "responses-stream": (prompt) =>
    discuss("streamed: " + prompt, async (request) => {
      const stream = client.responses.stream(request);
      let events = 0;
      for await (const _ of stream) events++;
      say("events", events);
      return stream.finalResponse();
    }),
  count: async (input) => say("count", await client.responses.inputTokens.count({ model: "gpt-5", input })),
  embed: async (prompt) => {
    const { data, usage } = await client.embeddings.create({
      model: "text-embedding-3-small",
      input: [prompt, "a second text"],
    });
    say("embedding", usage, ...data);
  },
  models: async () => {
    for await (const m of client.models.list()) say("model", m);
  },
  upload: async (prompt) => {
    const file = await toFile(Buffer.from(prompt + "\n"), "prompt.txt", { type: "text/plain" });
    say("file", await client.files.create({ file, purpose: "user_data" }));
  },
  retry: async (prompt) => {
    for (const status of [429, 500]) {
      const completion = await whole(ask(`${prompt}, but fail once with ${status}`));
      say("completion", completion.id, completion.choices);
    }
  },
  batch: (prompt) =>
    batch(prompt, async (part) => {
      const completion = await whole(ask(part));
      return [completion.id, completion.choices];
    }),
});
