// The eight behaviours of the run trace, and what else the public protocol's clients do, over a real socket.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { call, main, refused } from './cases.mjs'

// answering makes a tool that gives these outputs, one after the other.
const answering = (...outputs) => async () => outputs.shift()

async function drive_cli_turn (scene) {
  const prompt = 'fix the build: „naïve“ 日本 \\ " \u2028 and a tab\t'
  const output = { stdout: 'built\n', stderr: '', exit_code: 0, timed_out: false }
  const peer = await scene.dial()
  await peer.register({ drive_cli: answering(output) })
  const run = await scene.start(peer)
  const result = await peer.submit(call('drive_cli', { cli: 'agent', prompt }))
  assert.equal(result.results[0].status, 'succeeded')
  assert.deepEqual(result.results[0].output, output)
  const turns = await scene.turns(peer, run)
  assert.equal(turns.length, 1)
  const [turn] = turns
  assert.deepEqual([turn.index, turn.prompt, turn.tool], [0, prompt, 'drive_cli'])
  assert.deepEqual(turn.output, output)
  assert.deepEqual(turn.cli_outcome, { outcome: 'exited', code: 0 })
  assert.equal(turn.verifier_verdict, 'not_run')
  assert.equal(turn.policy_rejected ?? null, null)
  await peer.close()
}

async function check_outcome_pass_then_fail (scene) {
  const peer = await scene.dial()
  await peer.register({ check_outcome: answering({ passed: true }, { passed: false, detail: '2 tests fail' }) })
  const run = await scene.start(peer)
  for (let i = 0; i < 2; i++) await peer.submit(call('check_outcome', { command: 'make test' }))
  const turns = await scene.turns(peer, run)
  assert.deepEqual(turns.map(turn => [turn.index, turn.verifier_verdict]), [[0, 'pass'], [1, 'fail']])
  assert(turns.every(turn => turn.cli_outcome == null))
  await peer.close()
}

async function rejected_turn_never_ran (scene) {
  const peer = await scene.dial()
  await peer.register({ shell: answering('ran') })
  await peer.call('policy.register', { name: 'no_rm', rule: 'deny_tool_param', target: 'shell', key: 'command', pattern: 'rm -rf' })
  const run = await scene.start(peer)
  const result = await peer.submit(call('shell', { command: 'rm -rf /' }))
  assert.equal(result.results[0].status, 'rejected')
  assert.deepEqual(peer.ran, [])
  const [turn] = await scene.turns(peer, run)
  assert(turn.policy_rejected.rule.includes('no_rm'))
  assert.equal(turn.policy_rejected.param, 'command')
  assert(turn.policy_rejected.reason)
  assert(turn.output == null && turn.cli_outcome == null)
  assert.equal(turn.verifier_verdict, 'not_run')
  await peer.close()
}

async function timed_out_turn (scene) {
  const peer = await scene.dial()
  const output = { stdout: 'half of', timed_out: true }
  await peer.register({ drive_cli: answering(output) })
  const run = await scene.start(peer)
  await peer.submit(call('drive_cli', { prompt: 'take long' }))
  const [turn] = await scene.turns(peer, run)
  assert.deepEqual(turn.cli_outcome, { outcome: 'timeout' })
  assert.deepEqual(turn.output, output)
  await peer.close()
}

async function generic_tool_turn (scene) {
  const outputs = [{ hits: [1, 2] }, 'text', 3, null, true, [{}]]
  const parameters = { query: 'x', deep: { list: [1, null, 'é'] } }
  const peer = await scene.dial()
  await peer.register({ search: answering(...outputs) })
  const run = await scene.start(peer)
  for (const output of outputs) assert.deepEqual((await peer.submit(call('search', parameters))).results[0].output, output)
  const turns = await scene.turns(peer, run)
  assert.equal(turns.length, outputs.length)
  turns.forEach((turn, index) => {
    assert.deepEqual([turn.index, turn.tool, turn.parameters, turn.output ?? null], [index, 'search', parameters, outputs[index]])
    assert.equal(turn.verifier_verdict, 'not_run')
    assert(turn.cli_outcome == null && turn.prompt == null)
  })
  await peer.close()
}

async function two_batches_of_wrong_indices (scene) {
  const [peer, other] = [await scene.dial(), await scene.dial()]
  const run = await scene.start(peer)
  const wrong = [0, 7, -1, '3', 1.5, null, {}, 1e300]
  const batch = name => Array.from({ length: 25 }, (_, n) => ({ index: wrong[n % wrong.length], tool: name, parameters: { n } }))
  const replies = await Promise.all([peer, other].map((p, i) =>
    p.call('runs.record_turns', { run_id: run, turns: batch(['one', 'two'][i]) })))
  assert.deepEqual(replies.map(reply => reply.base_index).sort((a, b) => a - b), [0, 25])
  assert(replies.every(reply => reply.count === 25 && reply.ok === true))
  const turns = await scene.turns(peer, run)
  assert.deepEqual(turns.map(turn => turn.index), Array.from({ length: 50 }, (_, n) => n))
  replies.forEach((reply, i) => {
    const mine = turns.slice(reply.base_index, reply.base_index + 25)
    assert(mine.every((turn, n) => turn.tool === ['one', 'two'][i] && turn.parameters.n === n))
  })
  assert.deepEqual((await other.call('runs.subscribe', { run_id: run })).turns_so_far, turns)
  await Promise.all([peer.close(), other.close()])
}

async function completing_twice_is_an_error (scene) {
  const outcome = { status: 'give_up', summary: 'no way' }
  const peer = await scene.dial()
  const run = await scene.start(peer)
  assert.deepEqual(await peer.call('runs.complete', { run_id: run, outcome }), { run_id: run, ok: true })
  await refused(peer.call('runs.complete', { run_id: run, outcome }), -32603)
  const dropped = await peer.call('runs.record_turns', { run_id: run, turns: [{ tool: 'late' }] })
  assert.deepEqual(dropped, { run_id: run, base_index: 0, count: 0, ok: false, dropped: 'run_terminal' })
  assert.deepEqual(scene.lines(run).map(record => record.record), ['started', 'ended'])
  await peer.close()
}

async function no_run_no_turns (scene) {
  const peer = await scene.dial()
  await peer.register({ search: answering(1) })
  assert.equal((await peer.submit(call('search'))).results[0].status, 'succeeded')
  assert.deepEqual((await peer.call('runs.list', { agent_id: scene.agent })).runs, [])
  const dropped = await peer.call('runs.record_turns', { run_id: 'never', turns: [{ tool: 'x' }] })
  assert.deepEqual([dropped.ok, dropped.dropped], [false, 'run_not_found'])
  assert(!fs.existsSync(path.join(scene.data, 'runs', scene.agent)))
  await peer.close()
}

// Sixty proposals at once; their tools answer in the reverse order.
async function callbacks_out_of_order (scene) {
  const peer = await scene.dial()
  const n = 60
  const gates = Array.from({ length: n + 1 }, gate)
  gates[n].open()
  const ended = []
  await peer.register({
    echo: async parameters => {
      await gates[parameters.n + 1].opened
      ended.push(parameters.n)
      gates[parameters.n].open()
      return parameters
    }
  })
  const run = await scene.start(peer)
  const results = await Promise.all(Array.from({ length: n }, (_, i) => peer.submit({ id: `a${i}`, ...call('echo', { n: i }) })))
  results.forEach((result, i) => assert.deepEqual([result.results[0].action_id, result.results[0].output], [`a${i}`, { n: i }]))
  assert.deepEqual(ended, Array.from({ length: n }, (_, i) => n - 1 - i))
  assert.equal(new Set(peer.requests.map(request => request.id)).size, n)
  assert(peer.requests.every(({ id, params }) => typeof id === 'string' && params.request_id === id && params.attempt === 1))
  const turns = await scene.turns(peer, run)
  assert.deepEqual(turns.map(turn => turn.index), Array.from({ length: n }, (_, i) => i))
  assert(turns.every(turn => turn.output.n === turn.parameters.n))
  await peer.close()
}

function gate () {
  const g = {}
  g.opened = new Promise(resolve => { g.open = resolve })
  return g
}

async function cancelled_at_the_deadline (scene) {
  const peer = await scene.dial()
  let aborted = false
  await peer.register({
    slow: (_parameters, _request, signal) => new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => { aborted = true; reject(new Error('late')) })
    })
  })
  const run = await scene.start(peer)
  const result = await peer.submit({ ...call('slow'), timeout_ms: 200 })
  assert.equal(result.results[0].status, 'failed')
  while (!aborted) await pause(5)
  assert.equal(peer.cancels[0].request_id, peer.requests[0].id)
  assert.equal((await scene.turns(peer, run)).length, 1)
  assert.equal((await peer.call('tools.list')).count, 1) // the late reply harmed nothing
  await peer.close()
}

async function subscription_without_gap (scene) {
  const [peer, reader] = [await scene.dial(), await scene.dial()]
  const run = await scene.start(peer)
  const writing = (async () => {
    for (let n = 0; n < 100; n++) await peer.call('runs.record_turns', { run_id: run, turns: Array(1 + n % 3).fill({ tool: `${n}` }) })
    await peer.call('runs.complete', { run_id: run, outcome: { status: 'success' } })
  })()
  await pause(20)
  const snapshot = await reader.call('runs.subscribe', { run_id: run })
  const turns = snapshot.turns_so_far
  assert.equal(snapshot.cursor, turns.length)
  for (;;) {
    const { method, params } = await reader.events.take()
    assert.equal(method, 'runs.trace.event')
    if (params.record.record === 'ended') {
      assert.deepEqual([params.cursor, params.status], [turns.length + 1, 'completed'])
      break
    }
    turns.push(params.record)
    assert.equal(params.cursor, turns.length)
  }
  await writing
  assert.deepEqual(turns, await scene.turns(peer, run))
  await Promise.all([peer.close(), reader.close()])
}

async function left_open_reads_as_incomplete (scene) {
  let peer = await scene.dial()
  const run = await scene.start(peer)
  peer.socket.terminate() // without a closing handshake
  peer = await scene.dial()
  let status
  for (let i = 0; i < 400 && status !== 'incomplete'; i++) {
    await pause(50)
    status = (await peer.call('runs.list', { agent_id: scene.agent })).runs[0].status
  }
  assert.equal(status, 'incomplete')
  assert.deepEqual(scene.lines(run).map(record => record.record), ['started', 'ended'])
  await peer.close()
}

async function a_client_that_knows_less (scene) {
  const peer = await scene.dial()
  for (const method of ['memory.add_fact', 'agents.register_basics', 'verify', 'host.subscribe', '', '__proto__']) {
    await refused(peer.call(method), -32601)
  }
  for (const n of [1, 2, 3]) assert.equal((await peer.call('server.handshake', { protocol_version: n })).protocol_version, n)
  for (const n of [0, 4, '2', null]) await refused(peer.call('server.handshake', { protocol_version: n }), -32006)
  await peer.close()
}

await main([
  drive_cli_turn, check_outcome_pass_then_fail, rejected_turn_never_ran, timed_out_turn, generic_tool_turn,
  two_batches_of_wrong_indices, completing_twice_is_an_error, no_run_no_turns, callbacks_out_of_order, cancelled_at_the_deadline,
  subscription_without_gap, left_open_reads_as_incomplete, a_client_that_knows_less
])
