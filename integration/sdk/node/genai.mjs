// Plays the scenes with @google/genai against the Gemini API, its options left as they are but for the delay of retries.
import { GoogleGenAI } from "@google/genai";
import { batch, both, play, run, say, tool, turns } from "./scene.mjs";

const model = "gemini-2.5-flash";
const client = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY });

const config = () => ({
  systemInstruction: "Be brief.",
  tools: [
    {
      functionDeclarations: [
        { name: tool.name, description: tool.description, parametersJsonSchema: tool.schema },
      ],
    },
  ],
});

async function whole(request) {
  const response = await client.models.generateContent(request);
  say("response", response.responseId, response.usageMetadata);
  return response.candidates[0].content;
}

async function streamed(request) {
  const parts = [];
  for await (const chunk of await client.models.generateContentStream(request)) {
    say("chunk", chunk.responseId, chunk.usageMetadata);
    parts.push(...chunk.candidates[0].content.parts);
  }
  return { role: "model", parts };
}

// converse adds a turn of the user and goes on until the model calls no tool.
async function converse(request, prompt, call) {
  request.contents.push({ role: "user", parts: [{ text: prompt }] });
  await turns(async () => {
    const content = await call(request);
    say("content", content);
    request.contents.push(content);
    const results = content.parts
      .filter((part) => part.functionCall)
      .map(({ functionCall: { id, name, args } }) => ({
        functionResponse: { id, name, response: { output: run(name, args) } },
      }));
    if (results.length > 0) request.contents.push({ role: "user", parts: results });
    return results.length > 0;
  });
}

const fresh = () => ({ model, contents: [], config: config() });

await play({
  conversation: async (prompt) => {
    const request = fresh();
    await converse(request, prompt, whole);
    await converse(request, "now write second.txt", whole);
  },
  "side-by-side": (prompt) => converse(fresh(), both(prompt), streamed),
  stream: (prompt) => converse(fresh(), "streamed: " + prompt, streamed),
  thinking: (prompt) => {
    const request = fresh();
    request.config.thinkingConfig = { includeThoughts: true };
    return converse(request, "thoughtful: " + prompt, streamed);
  },
  count: async (contents) => say("count", (await client.models.countTokens({ model, contents })).totalTokens),
  embed: async (prompt) => {
    const contents = [prompt, "a second text"];
    const { embeddings } = await client.models.embedContent({ model: "gemini-embedding-001", contents });
    say("embedding", ...embeddings);
  },
  models: async () => {
    for await (const m of await client.models.list()) say("model", m.name);
  },
  upload: async (prompt) => {
    const file = new Blob([prompt + "\n"], { type: "text/plain" });
    say("file", await client.files.upload({ file, config: { displayName: "prompt.txt" } }));
  },
  retry: async (prompt) => {
    const httpOptions = { retryOptions: { attempts: 3, initialDelay: 0.01, jitter: 0.01 } };
    for (const status of [429, 500]) {
      const contents = `${prompt}, but fail once with ${status}`;
      const response = await client.models.generateContent({ model, contents, config: { httpOptions } });
      say("text", response.responseId, response.text);
    }
  },
  batch: (prompt) =>
    batch(prompt, async (contents) => {
      const response = await client.models.generateContent({ model, contents });
      return [response.responseId, response.text];
    }),
});
