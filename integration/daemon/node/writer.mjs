// Writes turns to a run until the connection is lost, and prints each acknowledgement; with --read prints a run's records.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { call } from './cases.mjs'
import { Peer } from './peer.mjs'

const text = { type: 'string' }
const { values: flags } = parseArgs({ options: { url: text, token: text, agent: text, run: text, read: { type: 'boolean' } } })
const say = value => process.stdout.write(JSON.stringify(value) + '\n')
const peer = await Peer.dial(flags.url, { token: flags.token ?? 'x', agent: flags.agent })

// write records batches of turns and tool calls in turn; each turn says whose it is and the how manieth.
async function write (task) {
  for (let n = 0; ;) {
    if (n % 5 === 4) {
      const result = await peer.submit(call('echo', { task, n }))
      assert.deepEqual(result.results[0].output, { task, n })
      say({ task, n, count: 1 })
      n++
      continue
    }
    const turns = Array.from({ length: 1 + task }, (_, i) => ({ tool: 'w', parameters: { task, n: n + i } }))
    const reply = await peer.call('runs.record_turns', { run_id: flags.run, turns }, 60000)
    if (!reply.ok) {
      assert.equal(reply.dropped, 'run_turn_limit')
      return
    }
    say({ task, n, count: reply.count, base: reply.base_index })
    n += reply.count
  }
}

if (flags.read) say(await peer.call('runs.get_trace', { run_id: flags.run }))
else {
  await peer.register({ echo: async parameters => parameters })
  await peer.call('runs.start', { intent: 'write on', idempotency_key: flags.run })
  const lost = peer.closed.then(() => say({ lost: true }))
  await Promise.race([lost, Promise.all([0, 1, 2, 3].map(task => write(task).catch(problem => {
    const stopping = problem.code === -32000 // it takes nothing new, and ends the connection
    if (!stopping && problem.message !== 'the connection is over' && !/not open/.test(problem.message)) throw problem
    return lost
  })))])
}
peer.socket.terminate()
