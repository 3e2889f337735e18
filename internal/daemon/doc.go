// Package daemon answers the methods of spec/agent-daemon.md: it lets agents in, brackets their runs, decides what their
// proposed tool calls may do, calls their tools back, and keeps every turn of a run so that it outlives crashes.
//
// Goals: a turn is on the disk before the reply that answers its call; what one agent does, another neither sees nor slows; a
// client of the public CAR protocol works here for the methods that are here; everything that a client can make the daemon hold
// has a bound that is written down (Limits).
//
// Non-goals: proposals that run side by side, keeping tools, policies or state beyond a connection.
//
// # Vocabulary
//
// A session is one connection: who it is (identity), its tools, its policies in scopes, its state, the runs that it holds, its
// subscriptions. An intent is what waits for a person's decision, a supervisor the host's connection that is told of it. A run is
// held by the sessions that started it, or started it again by its key; when the last of them goes away its grace begins, and at the
// end of that the run is given up: it ends as incomplete. A submission is one proposal while it runs; it keeps the run, the policies
// and the tenant that were in force when it came.
//
// # Who may do what
//
// The comment of identity has the table. A run that is not there and one that is somebody else's are answered alike, to the byte,
// and about in the same time. No id is looked up, and nothing is built from it, before runtrace.CheckName has passed it.
//
// # Ordering
//
// session.auth, tools.*, policy.*, session.* and state.* are answered before the next frame is read; all others run side by side, and
// their replies come in any order. runs.start has set the session's current run before its reply. The verdict on an action is kept
// before anything of the action runs, and its turn before the next action begins. An event of runs.subscribe comes after the reply,
// and events of one run in the order of its file.
//
// # Durability
//
// A reply that acknowledges a turn, a start or an end is sent after store.Store has it on the disk. When the store fails, the
// request is answered with an error, /readyz with 503, and the service manager's watchdog is not fed any longer. A clean stop
// answers what it was asked, ends the runs that are open as incomplete, closes the store and removes the tokens; whatever a kill
// leaves undone of that, the next Open does.
//
// # Goroutines
//
// Each connection has those of its jsonrpc.Conn, and one for each subscription, which session.serve waits for. Timers of graces end
// with holds.flush. The door's goroutine is waited for by Shutdown, the watchdog's by Serve.
//
// # Where the public protocol leaves a choice
//
//   - server.handshake takes versions 1 to 3, which say the same about the methods here. Of capabilities it grants the two that
//     clients of version 3 insist on, for they are about methods that are not here; any other that is required is -32008.
//   - The cursor of runs.get_trace counts records and comes back as it was sent; "next" beside it is where to go on. That of
//     runs.subscribe and its events counts turns.
//   - A subscriber that reads too slowly gets runs.trace.lost, which names what it missed as runs.get_trace takes it; so does one of
//     a run whose turns so far are more than 32 MiB, of what the reply does not have.
//   - A policy session that is not open rejects every action, as there; policies and a tenant given together both hold.
//   - A tool call that failed is a turn without output; one that ran into its time is a drive_cli's cli_outcome "timeout".
//   - A proposal that carries "idempotent" runs once in its connection. A result for which there was no room is not kept, and then
//     the repetition is an error: it never runs twice.
package daemon
