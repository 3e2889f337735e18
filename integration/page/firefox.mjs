// Opens the pages in Firefox: node firefox.mjs FIREFOX FOLDER. It speaks WebDriver BiDi, which Firefox itself serves, and prints a JSON
// object a page: {"name", "error", "note"}.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [firefox, folder] = process.argv.slice(2);
const WebSocket = createRequire(join(process.env.TAPEDECK_PAGE, 'here'))('ws');
const profile = mkdtempSync(join(tmpdir(), 'tapedeck-firefox-'));
const child = spawn(firefox, ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
process.on('exit', () => child.kill()); // however this ends
const address = await new Promise((found, failed) => {
  let said = '';
  child.stderr.on('data', d => {
    const at = /WebDriver BiDi listening on (ws:\S+)/.exec(said += d);
    if (at) found(at[1]);
  });
  child.on('exit', () => failed(new Error(said)));
});

const socket = new WebSocket(address + '/session'), waiting = new Map(), complaints = [];
socket.onmessage = ({ data }) => {
  const m = JSON.parse(data);
  if (m.id) waiting.get(m.id)(m);
  else if (m.method === 'log.entryAdded' && ['error', 'warn'].includes(m.params.level)) complaints.push(m.params.text);
};
await new Promise(open => { socket.onopen = open; });
let last = 0;
async function call(method, params) {
  const id = ++last, answer = new Promise(done => waiting.set(id, done));
  socket.send(JSON.stringify({ id, method, params }));
  const m = await answer;
  if (m.type === 'error') throw new Error(`${method}: ${m.message}`);
  return m.result;
}

await call('session.new', { capabilities: {} });
await call('session.subscribe', { events: ['log.entryAdded'] });
const { contexts: [{ context }] } = await call('browsingContext.getTree', {});
const evaluate = async expression => {
  const r = await call('script.evaluate', { expression, target: { context }, awaitPromise: true });
  if (r.type === 'exception') throw new Error(r.exceptionDetails.text);
  return r.result.value;
};
const settled = `new Promise(done => { const look = () => {
  const main = document.querySelector('main');
  main && !/Reading /.test(main.textContent) ? done(main.innerText) : requestAnimationFrame(look);
}; look(); })`;

for (const name of readdirSync(folder).filter(n => n.endsWith('.html')).sort()) {
  let error = '', note = '';
  complaints.length = 0;
  try {
    await call('browsingContext.navigate', { context, url: pathToFileURL(join(folder, name)).href, wait: 'complete' });
    const text = await evaluate(settled);
    assert.ok(text.length > 100, `it shows ${JSON.stringify(text)}`);
    for (const tab of ['record', 'turn', 'file', 'report', 'about']) {
      await evaluate(`var run = /run\\/[^/?]+/.exec(location.hash); if (run) location.hash = '#' + run[0] + '/${tab}'; ${settled}`);
      assert.equal(await evaluate("/This cannot be shown: .*/.exec(document.querySelector('main').textContent)?.[0] ?? ''"), '', tab);
    }
    assert.equal(await evaluate('String(window.pwned)'), 'undefined', 'a text of a recording ran');
    assert.deepEqual(complaints, [], 'what the browser complains of');
    note = `${text.length} characters`;
  } catch (e) {
    error = String(e.stack || e);
  }
  console.log(JSON.stringify({ name, error, note }));
}
child.removeAllListeners('exit');
const ended = new Promise(done => child.on('exit', done));
await call('browser.close', {}).catch(() => child.kill());
await ended;
rmSync(profile, { recursive: true, force: true });
