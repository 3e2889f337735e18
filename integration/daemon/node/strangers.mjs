// Who is let in, and what it may see; frames that are none.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { call, main, refused } from './cases.mjs'
import { Peer, within } from './peer.mjs'

async function no_token (scene) {
  const peer = await Peer.dial(scene.url)
  if (!scene.token) {
    assert.deepEqual(await peer.call('session.auth', { token: 'any' }), { ok: true, auth_enabled: false })
    return peer.close()
  }
  await refused(peer.call('tools.list'), -32001)
  await within(20000, 'end', peer.closed)
}

async function wrong_tokens (scene) {
  if (!scene.token) return
  for (const params of [{ token: 'wrong' }, { token: null }, { host_token: scene.token }, { token: scene.host }, {}, { token: scene.token + ' ' }]) {
    const peer = await Peer.dial(scene.url)
    await refused(peer.call('session.auth', params))
    await peer.call('session.auth', { token: scene.token })
    await peer.call('tools.list')
    await peer.close()
  }
}

async function the_run_of_another_does_not_exist (scene) {
  const [owner, thief] = [await scene.dial(), await scene.dial(scene.agent + '-thief')]
  const run = await scene.start(owner)
  const answer = async (method, params) => {
    const { id, ...rest } = await thief.ask({ method, params })
    return rest
  }
  for (const [method, params] of [['runs.get_trace', {}], ['runs.subscribe', {}], ['runs.complete', { outcome: { status: 'done' } }],
    ['runs.record_turns', { turns: [{ tool: 't' }] }]]) {
    const of = async name => JSON.stringify(await answer(method, { run_id: name, ...params })).replaceAll(name, 'NAME')
    assert.equal(await of(run), await of('never-was'), method)
  }
  await refused(thief.call('runs.list', { agent_id: scene.agent }))
  assert.deepEqual(scene.lines(run).map(record => record.record), ['started'])
  await Promise.all([owner.close(), thief.close()])
}

async function browsers (scene) {
  for (const origin of ['http://evil.example', 'null']) {
    const peer = await Peer.dial(scene.url, { origin }).catch(problem => problem)
    assert(peer instanceof Error && /403/.test(peer.message), `Origin ${origin}: ${peer}`)
  }
  for (const host of ['evil.example', 'evil.example:80']) {
    const peer = await Peer.dial(scene.url, { headers: { host } }).catch(problem => problem)
    assert(peer instanceof Error && /40[03]|421/.test(peer.message), `Host ${host}: ${peer}`)
  }
  const peer = await Peer.dial(scene.url, { perMessageDeflate: true })
  assert.equal(peer.socket.extensions, '') // offered, and not taken
  await peer.close()
}

async function names_that_are_none (scene) {
  const peer = await scene.dial()
  await scene.start(peer)
  const runs = path.join(scene.data, 'runs')
  const before = fs.readdirSync(runs, { recursive: true })
  for (const name of ['..', '../x', 'a/b', '%2e%2e%2fx', 'a\0b', 'a'.repeat(10000), 'ａ', 'аdmin', 'a\u202eb', '\ud800', ' a', '-a', '.a', 'a\n', '__proto__']) {
    await refused(peer.call('runs.start', { intent: 'x', agent_id: scene.agent, idempotency_key: name }))
    await refused(peer.call('runs.start', { intent: 'x', agent_id: name }))
    await refused(peer.call('runs.complete', { run_id: name, outcome: { status: 'done' } }))
    await refused(peer.call('runs.subscribe', { run_id: name }))
    await refused(peer.call('runs.list', { agent_id: name }))
  }
  assert.deepEqual(fs.readdirSync(runs, { recursive: true }), before)
  await peer.close()
}

// Whatever text comes, it is answered, and the connection lives.
async function texts_that_are_no_requests (scene) {
  const peer = await scene.dial()
  const texts = {
    '-32700': ['', '{', 'nul', '{"a":1,}', "{'a':1}", '\ufeff{}', '['.repeat(1e6)],
    '-32600': ['[]', '[{"jsonrpc":"2.0","id":1,"method":"tools.list"}]', '1', 'null', '{}', '{"jsonrpc":"2.0","id":true,"method":"tools.list"}',
      '{"jsonrpc":"2.0","id":1,"method":{}}', '{"jsonrpc":"1.0","id":1,"method":"tools.list"}']
  }
  for (const [code, list] of Object.entries(texts)) {
    for (const text of list) {
      peer.strange.length = 0
      peer.send(text)
      await peer.call('state.keys') // answered behind it
      assert.equal(peer.strange.length, 1, text.slice(0, 80))
      assert.equal(peer.strange[0].error.code, Number(code), text.slice(0, 80))
    }
  }
  for (const id of [0, -1, 1.5, 1e21, '', 'x', '"', '日本', 'cb-1', 'i'.repeat(1000)]) {
    const reply = await peer.ask({ method: 'state.exists', params: { key: 'k' }, id })
    assert.deepEqual(reply, { jsonrpc: '2.0', id, result: false })
  }
  await peer.close()
}

async function frames_that_close (scene) {
  for (const [frame, code] of [[Buffer.from('{}'), 1003], ['x'.repeat((16 << 20) + 1), 1009]]) {
    const peer = await scene.dial()
    peer.send(frame)
    assert.equal((await within(20000, 'end', peer.closed)).code, code)
  }
}

// A client that goes away in the middle of a callback leaves a turn of what became of it.
async function gone_within_a_callback (scene) {
  let peer = await scene.dial()
  await peer.register({ t: () => peer.socket.terminate() })
  const run = await scene.start(peer)
  await assert.rejects(peer.submit(call('t', { n: 1 })))
  peer = await scene.dial()
  for (;;) {
    const { records } = await peer.call('runs.get_trace', { run_id: run })
    if (records.at(-1).record !== 'ended') continue
    assert.deepEqual(records.map(record => record.record), ['started', 'turn', 'ended'])
    assert.deepEqual([records[1].tool, records[1].parameters, records[2].status], ['t', { n: 1 }, 'incomplete'])
    break
  }
  await peer.close()
}

await main([
  no_token, wrong_tokens, the_run_of_another_does_not_exist, browsers, names_that_are_none, texts_that_are_no_requests,
  frames_that_close, gone_within_a_callback
])
