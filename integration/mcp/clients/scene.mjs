// Plays a scene with MCP servers and prints what came, one JSON line a step: node scene.mjs SCENE, where SCENE is
//   {"servers": {NAME: {"command", "args", "env", "sockets"} | {"url"} | {"sse"}}, "steps": [STEP…], "leave": true}
// A STEP is {"server", "tool", "args"}, {"server", "method", "params"} or {"all": [STEP…]}, whose steps run side by side, and
// are printed as they end or, "inOrder", as they stand: over connections of their own nothing tells which of two answers came first.
// Of "size" a step's result is told in short; "timeout" is in milliseconds, "limit" how long a server's line may be; a step or a server that "fails" is expected to.
// "stderr": "inherit" passes a server's stderr through. The SDK is that of TAPEDECK_MCP.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.env.TAPEDECK_MCP + '/')
const sdk = (name) => import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/' + name)))
const { Client } = await sdk('client/index.js')
const { StdioClientTransport } = await sdk('client/stdio.js')
const { StreamableHTTPClientTransport } = await sdk('client/streamableHttp.js')
const { SSEClientTransport } = await sdk('client/sse.js')
const types = await sdk('types.js')

const scene = JSON.parse(process.argv[2])
const say = (what) => process.stdout.write(JSON.stringify(what) + '\n')

function transport (s) {
  if (s.url) return new StreamableHTTPClientTransport(new URL(s.url), { requestInit: { headers: s.headers ?? {} } })
  if (s.sse) return new SSEClientTransport(new URL(s.sse))
  return new StdioClientTransport({ command: s.command, args: s.args, env: { ...process.env, ...s.env }, stderr: s.stderr ?? 'ignore', maxBufferSize: s.limit })
}

async function connect (name, s) {
  const client = new Client({ name: 'scene', version: '1' }, { capabilities: { sampling: {}, roots: {}, elicitation: {} } })
  client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file://' + process.cwd(), name: 'here' }] }))
  client.setRequestHandler(types.CreateMessageRequestSchema, (r) => {
    say({ server: name, sampling: r.params.messages })
    return { model: 'scripted', role: 'assistant', content: { type: 'text', text: 'a sampled answer' } }
  })
  client.setRequestHandler(types.ElicitRequestSchema, (r) => {
    say({ server: name, elicitation: r.params.message })
    return { action: 'decline' }
  })
  await client.connect(transport(s))
  return client
}

const clients = {}
async function play (step, tell = say) {
  if (step.all && step.inOrder) {
    const said = await Promise.all(step.all.map(async (s) => { let what; await play(s, (w) => { what = w }); return what }))
    return said.forEach(say)
  }
  if (step.all) return Promise.all(step.all.map((s) => play(s)))
  const client = clients[step.server]
  const progress = []
  const options = { timeout: step.timeout }
  if (step.progress) options.onprogress = (p) => progress.push(p.progress)
  try {
    const result = step.tool
      ? await client.callTool({ name: step.tool, arguments: step.args ?? {} }, undefined, options)
      : await client.request({ method: step.method, params: step.params ?? {} }, types.ResultSchema, options)
    if (step.size) result.content = result.content.map((c) => ({ length: c.text.length, end: c.text.slice(-8) }))
    tell({ ...step, result: step.count ? Object.values(result)[0].length : result, ...(step.progress ? { progress } : {}) })
  } catch (err) {
    tell({ ...step, error: err.message })
    if (!step.fails) process.exitCode = 3
  }
}

for (const [name, s] of Object.entries(scene.servers)) {
  try {
    clients[name] = await connect(name, s)
  } catch (err) {
    say({ server: name, error: err.message })
    if (!s.fails) process.exitCode = 3
  }
}
for (const step of scene.steps ?? []) await play(step)
if (scene.leave) process.exit()
for (const client of Object.values(clients)) await client.close()
