// A server over stdio that does what servers should not: node crooked.mjs HOW. Its one tool is called "look".
//   logs     writes lines between its messages that are none
//   split    writes its answers a byte at a time
//   big      answers with 20 MB
//   dies     ends in the middle of an answer
//   silent   never answers
//   version  speaks a version of the protocol that does not exist
import { createInterface } from 'node:readline'

const how = process.argv[2]
let written = Promise.resolve()
function write (bytes, then) {
  written = written.then(() => new Promise((resolve) => process.stdout.write(bytes, resolve))).then(then)
}

function answer (id, result) {
  const line = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n')
  if (how === 'split') for (const byte of line) write(Buffer.of(byte))
  else if (how === 'dies' && result.content) write(line.subarray(0, line.length / 2), () => process.exit(7))
  else write(line)
}

function log (line) {
  if (how === 'logs') write(line + '\n')
}

const text = how === 'big' ? '0123456789abcdef'.repeat(20 * 65536) : 'blühende 花 🌼'
log('crooked 1.0 listens')
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  log('[info] got ' + method)
  log('{"level":"debug"}')
  log('')
  if (method === 'initialize') {
    const protocolVersion = how === 'version' ? '1999-01-01' : '2025-06-18'
    answer(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'crooked', version: '1' } })
  } else if (method === 'tools/list') {
    answer(id, { tools: [{ name: 'look', inputSchema: { type: 'object' } }] })
  } else if (method === 'tools/call' && how !== 'silent') {
    answer(id, { content: [{ type: 'text', text }] })
  }
}
