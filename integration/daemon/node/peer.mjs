// A client of the daemon in JavaScript: JSON-RPC 2.0 over the ws package, tools served while own calls are in flight. It shares no
// code with Tapedeck. TAPEDECK_WS names the node_modules folder that ws is in.
import { createRequire } from 'node:module'
import path from 'node:path'

const WebSocket = createRequire(path.join(process.env.TAPEDECK_WS, 'x.js'))('ws')

// What the daemon replied as an error.
export class Refused extends Error {
  constructor (method, error) {
    super(`${method}: ${JSON.stringify(error)}`)
    Object.assign(this, { code: error.code, data: error.data, text: error.message })
  }
}

// A Queue hands what is put to whoever takes, in order.
class Queue {
  #waiting = []
  #there = []

  put (value) {
    const taker = this.#waiting.shift()
    if (taker) taker(value)
    else this.#there.push(value)
  }

  take (ms = 20000) {
    if (this.#there.length > 0) return Promise.resolve(this.#there.shift())
    return within(ms, 'event', new Promise(resolve => this.#waiting.push(resolve)))
  }
}

export function within (ms, what, promise) {
  let timer
  const late = new Promise((_resolve, reject) => { timer = setTimeout(() => reject(new Error(`no ${what} within ${ms} ms`)), ms) })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// A Peer is one connection. tools maps names to functions of (parameters, request, signal) whose promise is the output.
export class Peer {
  tools = {}
  ran = [] // names of the tools called, in order
  requests = [] // tools.execute as they came
  cancels = [] // the params of tools.cancel
  events = new Queue() // runs.trace.event and what else is notified
  strange = [] // replies that nobody asked for
  #waiting = new Map()
  #working = new Map()
  #next = 0

  // dial connects to ws://… or unix:PATH, and authenticates where there is a token.
  static async dial (place, { token, agent, host, ...options } = {}) {
    const url = place.startsWith('unix:') ? `ws+unix:${place.slice(5)}:/` : place
    const peer = new Peer(new WebSocket(url, options))
    await peer.opened
    if (host) await peer.call('session.auth', { host_token: host })
    else if (token) await peer.call('session.auth', agent ? { token, agent_id: agent } : { token })
    return peer
  }

  constructor (socket) {
    this.socket = socket
    this.opened = new Promise((resolve, reject) => { socket.once('open', resolve); socket.once('error', reject) })
    this.closed = new Promise(resolve => socket.once('close', (code, reason) => resolve({ code, reason: String(reason) })))
    socket.on('error', () => {}) // the end tells
    socket.on('message', data => this.#take(JSON.parse(data)))
    this.closed.then(() => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the connection is over'))
      for (const stop of this.#working.values()) stop.abort()
    })
  }

  // call gives the result of a method, or throws Refused.
  async call (method, params = {}, ms = 20000) {
    const reply = await this.ask({ method, params }, ms)
    if (reply.error) throw new Refused(method, reply.error)
    return reply.result
  }

  // ask sends a request and gives the whole reply.
  ask (request, ms = 20000) {
    const id = request.id ?? `n${this.#next++}`
    const answered = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
    this.send({ jsonrpc: '2.0', id, ...request })
    return within(ms, `answer to ${request.method}`, answered)
  }

  send (message) { this.socket.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message)) }

  // register registers tools that this peer serves; their schemas are empty.
  register (tools) {
    Object.assign(this.tools, tools)
    return this.call('tools.register', Object.keys(tools).map(name => ({ name })))
  }

  // submit gives the result of a proposal with these actions.
  submit (...actions) { return this.call('proposal.submit', { proposal: { actions } }) }

  async close () {
    this.socket.close()
    await this.closed
  }

  #take (message) {
    if (message.method === 'tools.execute') this.#serve(message)
    else if (message.method === 'tools.cancel') {
      this.cancels.push(message.params)
      this.#working.get(message.params.request_id)?.abort()
    } else if (message.method) this.events.put(message)
    else if (this.#waiting.has(message.id)) {
      this.#waiting.get(message.id).resolve(message)
      this.#waiting.delete(message.id)
    } else this.strange.push(message)
  }

  async #serve (request) {
    const { params, id } = request
    const stop = new AbortController()
    this.requests.push(request)
    this.ran.push(params.tool)
    this.#working.set(id, stop)
    let answer
    try {
      answer = { result: await this.tools[params.tool](params.parameters, params, stop.signal) ?? null }
    } catch (problem) {
      answer = { error: { code: -32000, message: String(problem.message) } }
    }
    this.#working.delete(id)
    if (this.socket.readyState === WebSocket.OPEN) this.send({ jsonrpc: '2.0', id, ...answer })
  }
}
