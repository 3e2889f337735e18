// A tool server of Model Context Protocol over stdio, with one tool: it numbers what it is told to remember.
const lines = require('node:readline').createInterface({ input: process.stdin });
const notes = [];
const tool = {
  name: 'remember', description: 'remember a note',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
};
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1.0.0' } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': ({ arguments: { text } }) => ({ content: [{ type: 'text', text: `note ${notes.push(text)}: ${text}` }] }),
};
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const said = answer ? { result: answer(params) } : { error: { code: -32601, message: `no method ${method}` } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
});
