// What every generated program in JavaScript begins with: the acts that it puts in order. Nothing but Node.
import { spawn, spawnSync } from "node:child_process";
import crypto from "node:crypto";
import dgram from "node:dgram";
import dns from "node:dns/promises";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import zlib from "node:zlib";

const ROOTS = { tree: process.cwd(), home: process.env.HOME, tmp: process.env.TMPDIR };
const HERE = import.meta.dirname;

const argument = n => process.argv[n + 1];
const variable = name => process.env[name];
const setting = name => JSON.parse(fs.readFileSync(path.join(ROOTS.home, ".agentrc")))[name];

// What differs in every run.
const now_iso = () => new Date().toISOString();
const now_words = () => new Date().toString();
const unix_seconds = () => (Date.now() / 1000).toFixed(3);
const unix_ms = () => String(Date.now());
const uuid4 = () => crypto.randomUUID();
const random_int = () => String(crypto.randomInt(1000, 1000000));
const random_float = () => String(Math.random());
const random_hex = () => crypto.randomBytes(12).toString("hex");
const pid = () => String(process.pid);
const temp_dir = () => fs.mkdtempSync(path.join(ROOTS.tmp, "agent-"));
const temp_name = () => path.basename(temp_dir());
const own_mtime = () => String(fs.statSync(put(ROOTS.home, ".stamp", "x", 0o644)).mtimeMs);
const child_date = () => output(["date", "+%H:%M:%S.%N"]);
const child_random = () => output(["bash", "-c", "echo $RANDOM"]);
const child_temp = () => output(["mktemp", "-u", "out-XXXXXXXX"]);
const child_uuid = () => output(["cat", "/proc/sys/kernel/random/uuid"]);
const child_pid = () => output(["sh", "-c", "echo $$"]);
const child_python = () => output(["/usr/bin/python3", "-c", "import random, time; print(time.time_ns(), random.random(), {'a', 'b', 'c', 'd'})"]);
function took() {
  const began = performance.now();
  Array.from({ length: 20000 }, (_, n) => -n).sort((a, b) => a - b);
  return (performance.now() - began).toFixed(2) + " ms";
}
const output = argv => spawnSync(argv[0], argv.slice(1)).stdout.toString().trim();

// Output.
const say = o => void fs.writeSync(1, o.text + "\n");
const complain = o => void fs.writeSync(2, o.text + "\n");
const say_in_parts = o => o.parts.forEach(p => fs.writeSync(1, p));
const rest = o => new Promise(done => setTimeout(done, o.ms));
const finish = o => process.exit(o.code);

// Files.
function put(root, name, text, mode) {
  const at = path.join(root, name);
  fs.mkdirSync(path.dirname(at), { recursive: true });
  fs.writeFileSync(at, text);
  fs.chmodSync(at, mode);
  return at;
}
const place = o => path.join(ROOTS[o.root], o.name);
const write = o => void put(ROOTS[o.root], o.name, o.text, o.mode ?? 0o644);
const look = o => void fs.readFileSync(place(o));
const symlink = o => fs.symlinkSync(o.target, place(o));
const hard_link = o => fs.linkSync(path.join(ROOTS[o.root], o.target), place(o));
const directory = o => fs.mkdirSync(place(o));
const fifo = o => void spawnSync("mkfifo", [place(o)]);
const set_mode = o => fs.chmodSync(place(o), o.mode);
const set_time = o => fs.utimesSync(place(o), o.at, o.at);
const remove = o => fs.unlinkSync(place(o));
const rename = o => fs.renameSync(place(o), path.join(ROOTS[o.root], o.to));
const append = o => fs.appendFileSync(place(o), o.text);
const cut = o => fs.truncateSync(place(o), o.to);
function big(o) { // a sparse file with some text before its end
  const f = fs.openSync(place(o), "w");
  fs.ftruncateSync(f, o.mib * 1048576);
  fs.writeSync(f, o.text, o.mib * 1048576 - 4096);
  fs.closeSync(f);
}
const threads = o => Promise.all(o.texts.map((text, n) => fs.promises.writeFile(path.join(ROOTS.tree, o.name + "-" + n), text)));
async function daemon(o) {
  const at = path.join(ROOTS.tree, o.name);
  spawnSync("sh", ["-c", `setsid sh -c 'printf %s "$1" >"$2.part"; mv "$2.part" "$2"' daemon "$1" "$2" >/dev/null 2>&1 &`, "start", o.text, at]);
  while (!fs.existsSync(at)) await rest({ ms: 5 });
}
function passing(o) {
  write(o);
  fs.unlinkSync(place(o));
}
function put_back(o) {
  const before = fs.readFileSync(place(o));
  write(o);
  put(ROOTS[o.root], o.name, before, 0o644);
}

// Children.
function child(o) {
  const cwd = o.cwd ? path.join(ROOTS.tree, o.cwd) : undefined;
  const done = spawnSync(o.argv[0], o.argv.slice(1), { input: o.stdin ?? "", env: { ...process.env, ...o.env }, cwd });
  if (o.show) say({ text: done.stdout.toString().trim() });
  return done.stdout.toString().trim();
}

// The network.
async function call(method, url, headers, body) {
  let answer;
  try {
    answer = await fetch(url, { method, headers, body });
    if (answer.ok) return await answer.text();
  } catch {
    return failed(0);
  }
  return failed(answer.status);
}
function failed(code) {
  if (!TOLERANT) {
    complain({ text: "the call failed: " + code });
    process.exit(9);
  }
  return JSON.stringify({ failed: code });
}
async function http(o) {
  let url = "https://" + o.host + o.path.split("/").map(encodeURIComponent).join("/");
  if (o.query) url += "?" + new URLSearchParams(o.query);
  const headers = { ...o.headers };
  let body;
  if (o.gzip) headers["Content-Encoding"] = "gzip";
  if ("json" in o) [headers["Content-Type"], body] = ["application/json", JSON.stringify(o.json)];
  else if ("raw" in o) [headers["Content-Type"], body] = [o.type, o.gzip ? zlib.gzipSync(o.raw) : o.raw];
  else if ("form" in o) [headers["Content-Type"], body] = ["application/x-www-form-urlencoded", String(new URLSearchParams(o.form))];
  else if ("parts" in o) [headers["Content-Type"], body] = ["multipart/form-data; boundary=" + o.boundary, multipart(o)];
  return JSON.parse(await call(o.method, url, headers, body)).says ?? "nothing";
}
function multipart(o) {
  let text = "";
  for (const p of o.parts) {
    text += "--" + o.boundary + '\r\nContent-Disposition: form-data; name="' + p.name + '"';
    if ("file" in p) text += '; filename="' + p.file + '"\r\nContent-Type: text/plain';
    text += "\r\n\r\n" + p.text + "\r\n";
  }
  return text + "--" + o.boundary + "--\r\n";
}
const resolve = o => dns.lookup(o.name).catch(() => {});
const knock = o => new Promise(done => {
  const s = net.connect(o.path, () => s.end(done));
  s.on("error", () => done());
});
const datagram = o => new Promise(done => {
  const s = dgram.createSocket("udp4");
  s.send(o.text, 9125, o.to, () => s.close(done));
});

// Models. A turn is ["user", text], ["calls", [[id, name, arguments]…]] or ["results", [[id, name, text]…]].
async function ask(o) {
  const turns = [["user", o.prompt]];
  let [text, calls] = await exchange(o, turns);
  for (let n = 0; n < 3 && calls.length > 0; n++) {
    turns.push(["calls", calls], ["results", await results(o, calls)]);
    [text, calls] = await exchange(o, turns);
  }
  return text;
}
async function results(o, calls) {
  if (!o.tool.race) return calls.map(([id, name]) => [id, name, o.tool.result]);
  const done = [];
  await Promise.all(calls.map(async ([id, name, args]) => {
    await rest({ ms: Math.random() * 20 });
    done.push([id, name, o.tool.result + " of " + JSON.stringify(args)]);
  }));
  return done;
}
async function exchange(o, turns) {
  const [url, headers, body] = REQUESTS[o.wire](o, turns);
  const raw = await call("POST", url, { "Content-Type": "application/json", ...headers, ...o.headers }, JSON.stringify(body));
  if (raw.startsWith('{"failed"')) return [raw, []];
  const events = o.stream ? raw.split("\n").filter(l => /^(data: )?\{/.test(l)).map(l => JSON.parse(l.replace("data: ", ""))) : [JSON.parse(raw)];
  return ANSWERS[o.wire](events, o.stream);
}

const schema = o => ({ type: "object", properties: { [o.tool.property]: { type: "string" } } });

const REQUESTS = {
  anthropic(o, turns) {
    const forms = {
      user: t => ({ role: "user", content: t }),
      calls: cs => ({ role: "assistant", content: cs.map(([id, name, input]) => ({ type: "tool_use", id, name, input })) }),
      results: rs => ({ role: "user", content: rs.map(([id, , t]) => ({ type: "tool_result", tool_use_id: id, content: t })) }),
    };
    const body = { model: o.model, max_tokens: o.limit, temperature: o.temperature, stream: o.stream, system: o.system, messages: turns.map(([k, v]) => forms[k](v)) };
    if (o.tool) body.tools = [{ name: o.tool.name, description: o.tool.description, input_schema: schema(o) }];
    return ["https://api.anthropic.com/v1/messages", { "x-api-key": "sk-ant-dummy", "anthropic-version": "2023-06-01" }, body];
  },
  chat(o, turns) {
    const messages = [{ role: "system", content: o.system }];
    for (const [k, v] of turns) {
      if (k === "user") messages.push({ role: "user", content: v });
      else if (k === "calls") messages.push({ role: "assistant", content: null, tool_calls: v.map(([id, name, a]) => ({ id, type: "function", function: { name, arguments: JSON.stringify(a) } })) });
      else messages.push(...v.map(([id, , t]) => ({ role: "tool", tool_call_id: id, content: t })));
    }
    const body = { model: o.model, max_completion_tokens: o.limit, temperature: o.temperature, stream: o.stream, messages };
    if (o.tool) body.tools = [{ type: "function", function: { name: o.tool.name, description: o.tool.description, parameters: schema(o) } }];
    return ["https://api.openai.com/v1/chat/completions", { Authorization: "Bearer sk-dummy" }, body];
  },
  mistral(o, turns) {
    const [, headers, { max_completion_tokens, ...body }] = REQUESTS.chat(o, turns);
    return ["https://api.mistral.ai/v1/chat/completions", headers, { ...body, max_tokens: max_completion_tokens }];
  },
  ollama(o, turns) {
    const messages = [{ role: "system", content: o.system }, ...turns.map(([, content]) => ({ role: "user", content }))];
    const options = { temperature: o.temperature, num_predict: o.limit };
    return ["https://ollama.example.com/api/chat", {}, { model: o.model, stream: o.stream, options, messages }];
  },
  responses(o, turns) {
    const input = [];
    for (const [k, v] of turns) {
      if (k === "user") input.push({ role: "user", content: v });
      else if (k === "calls") input.push(...v.map(([call_id, name, a]) => ({ type: "function_call", call_id, name, arguments: JSON.stringify(a) })));
      else input.push(...v.map(([call_id, , output]) => ({ type: "function_call_output", call_id, output })));
    }
    const body = { model: o.model, max_output_tokens: o.limit, temperature: o.temperature, stream: o.stream, instructions: o.system, input };
    if (o.tool) body.tools = [{ type: "function", name: o.tool.name, description: o.tool.description, parameters: schema(o) }];
    return ["https://api.openai.com/v1/responses", { Authorization: "Bearer sk-dummy" }, body];
  },
  gemini(o, turns) {
    const forms = {
      user: t => ({ role: "user", parts: [{ text: t }] }),
      calls: cs => ({ role: "model", parts: cs.map(([id, name, args]) => ({ functionCall: { id, name, args } })) }),
      results: rs => ({ role: "user", parts: rs.map(([id, name, t]) => ({ functionResponse: { id, name, response: { output: t } } })) }),
    };
    const body = { systemInstruction: { parts: [{ text: o.system }] }, contents: turns.map(([k, v]) => forms[k](v)), generationConfig: { maxOutputTokens: o.limit, temperature: o.temperature } };
    if (o.tool) body.tools = [{ functionDeclarations: [{ name: o.tool.name, description: o.tool.description, parametersJsonSchema: schema(o) }] }];
    const verb = o.stream ? "streamGenerateContent?alt=sse" : "generateContent";
    return ["https://generativelanguage.googleapis.com/v1beta/models/" + o.model + ":" + verb, { "x-goog-api-key": "dummy" }, body];
  },
};

const ANSWERS = {
  anthropic(events, stream) {
    const blocks = stream ? [] : events[0].content;
    for (const e of stream ? events : []) {
      if (e.type === "content_block_start") blocks.push({ ...e.content_block, json: "" });
      else if (e.delta?.type === "text_delta") blocks[e.index].text += e.delta.text;
      else if (e.delta?.type === "input_json_delta") blocks[e.index].json += e.delta.partial_json;
    }
    const calls = blocks.filter(b => b.type === "tool_use").map(b => [b.id, b.name, stream ? JSON.parse(b.json) : b.input]);
    return [blocks.filter(b => b.type === "text").map(b => b.text).join(""), calls];
  },
  chat(events, stream) {
    let text = "";
    const calls = [];
    for (const choice of events.flatMap(e => e.choices)) {
      const m = stream ? choice.delta : choice.message;
      text += m.content ?? "";
      (m.tool_calls ?? []).forEach((c, n) => {
        const known = (calls[c.index ?? n] ??= ["", "", ""]);
        known[0] += c.id ?? "";
        known[1] += c.function.name ?? "";
        known[2] += c.function.arguments;
      });
    }
    return [text, calls.map(([id, name, a]) => [id, name, JSON.parse(a)])];
  },
  mistral: (events, stream) => ANSWERS.chat(events, stream),
  ollama: events => [events.map(e => e.message.content).join(""), []],
  responses(events, stream) {
    const { output } = stream ? events.find(e => e.type === "response.completed").response : events[0];
    const text = output.filter(i => i.type === "message").flatMap(i => i.content).map(c => c.text).join("");
    return [text, output.filter(i => i.type === "function_call").map(i => [i.call_id, i.name, JSON.parse(i.arguments)])];
  },
  gemini(events) {
    const parts = events.flatMap(e => e.candidates[0].content.parts);
    return [parts.map(p => p.text ?? "").join(""), parts.filter(p => p.functionCall).map(({ functionCall: c }) => [c.id, c.name, c.args])];
  },
};

// Tools over MCP, on stdin and stdout of a server.
async function mcp(o) {
  const server = spawn("/usr/bin/python3", [path.join(HERE, "server.py"), ...o.args], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...o.env } });
  server.stdin.on("error", () => {});
  const lines = readline.createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const ended = new Promise(done => server.on("close", done));
  const tell = message => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  let number = 0;
  async function request(method, params) {
    tell({ id: ++number, method, params });
    return JSON.parse((await lines.next()).value ?? '{"error":0}').result ?? {};
  }
  await request("initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "generated", version: "1" } });
  tell({ method: "notifications/initialized" });
  await request("tools/list", {});
  const texts = [];
  for (const c of o.calls) texts.push(...((await request("tools/call", { name: c.tool, arguments: c.arguments })).content ?? []).map(p => p.text));
  server.stdin.end();
  await ended;
  return texts.join(" and ");
}

// together starts all acts side by side; what they came to, in their order here.
const together = async o => (await Promise.all(o.acts.map(a => a()))).join(" / ");
