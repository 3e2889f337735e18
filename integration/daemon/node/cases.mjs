// The cases' frame: each is a function that is run by itself and printed as one line.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { Peer, Refused, within } from './peer.mjs'

// Scene is what a case is given: where the daemon is, who to be, and its files.
class Scene {
  constructor (flags, name) {
    Object.assign(this, { url: flags.url, data: flags.data, host: flags['host-token'], token: flags.token })
    this.agent = `${flags.prefix}-${name.replaceAll('_', '-')}`
  }

  dial (agent = this.agent, options = {}) { return Peer.dial(this.url, { token: this.token ?? 'none is needed', agent, ...options }) }

  async start (peer, more = {}) {
    const started = await peer.call('runs.start', { intent: 'a test', agent_id: this.agent, ...more })
    assert.equal(started.agent_id, this.agent)
    return started.run_id
  }

  file (run, agent = this.agent) { return path.join(this.data, 'runs', agent, run + '.jsonl') }

  // lines gives the records of the run's file; it throws where one does not parse, or others can read it.
  lines (run, agent = this.agent) {
    const file = this.file(run, agent)
    assert.equal(fs.statSync(file).mode & 0o777, 0o600)
    assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700)
    const text = fs.readFileSync(file, 'utf8')
    assert(text.endsWith('\n'), 'the file ends within a line')
    return text.slice(0, -1).split('\n').map(line => JSON.parse(line))
  }

  // turns gives the turns of the run as get_trace has them, which must be those of the file.
  async turns (peer, run) {
    const { records } = await peer.call('runs.get_trace', { run_id: run })
    assert.deepEqual(records, this.lines(run))
    return records.filter(record => record.record === 'turn')
  }
}

export const call = (tool, parameters = {}) => ({ type: 'tool_call', tool, parameters })

// refused waits for a call that must be refused, with one of the codes where some are given.
export async function refused (waiting, ...codes) {
  let result
  try {
    result = await waiting
  } catch (problem) {
    assert(problem instanceof Refused, problem)
    if (codes.length > 0) assert(codes.includes(problem.code), `refused with ${problem.code} (${problem.text}), want ${codes}`)
    return problem
  }
  assert.fail(`accepted with ${JSON.stringify(result)}, want an error`)
}

// main runs the cases and prints a line of each: ok NAME, or not ok NAME: why. The process exits 1 where one failed.
export async function main (cases) {
  const text = { type: 'string' }
  const { values: flags } = parseArgs({
    options: { url: text, data: text, token: text, 'host-token': text, prefix: { ...text, default: 'js' }, only: text }
  })
  let failed = 0
  for (const run of cases) {
    if (flags.only && run.name !== flags.only) continue
    try {
      await within(60000, 'end of the case', run(new Scene(flags, run.name)))
      console.log('ok', run.name)
    } catch (problem) {
      failed++
      console.log(`not ok ${run.name}: ${String(problem.message ?? problem).replaceAll('\n', ' ').slice(0, 2000)}`)
      console.error(problem)
    }
  }
  console.log('done')
  process.exit(failed > 0 ? 1 : 0)
}
