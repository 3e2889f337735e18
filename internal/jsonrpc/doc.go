// Package jsonrpc is one peer of a JSON-RPC 2.0 conversation that calls and is called, both at once, over a stream of text
// frames.
//
// Goals: nothing that the other side does makes this one hold unbounded memory, wait for ever or lose a reply; a call costs
// little more than its frames; requests run side by side and are answered in any order.
//
// Non-goals: batches, methods by reflection, any other version. It knows no method.
//
// # Vocabulary
//
// A frame is one JSON text: a request (it has an id), a notification (it has none) or a reply. A Stream carries frames: a
// WebSocket (package websock), or lines over a socket (NewLines). A Conn is a peer on a Stream.
//
// # What comes in
//
// The envelope is read by internal/jsonscan; params and results stay as they came. What is wrong is answered, and the
// conversation goes on:
//
//	not JSON, not UTF-8, nested deeper than jsonscan.MaxDepth     -32700, id null
//	a batch, a scalar, a key of the envelope that stands twice,
//	a version that is there and not "2.0", a method that is no string,
//	an id that is neither string nor number nor null (or is longer
//	than MaxID bytes), a request that is a reply too              -32600, id null unless the id itself is well
//	params that are neither object nor array nor null             -32602
//	a reply to a call that nobody waits for                       dropped, counted
//
// A frame longer than the limit ends the conversation: a WebSocket with its close code, lines with one error -32600.
//
// An id is kept as bytes and comes back as those bytes: no number is rounded. Keys that the envelope does not know are
// ignored.
//
// # Ordering
//
// One goroutine reads. A request that Options.Inline names is handled before the next frame is read; all others run
// concurrently, begun in the order in which they came. Frames go out in the order in which they were queued: a notification
// that a handler sends stands before its own reply.
//
// # Bounds
//
// Each has a default in Limits. A frame is at most Frame bytes. At most Concurrent handlers run at once and Waiting
// requests wait behind them. A handler that waits in Request.Call has no place among those that run, so that requests of the
// peer, which its reply may need, are not behind it; as many as Waiting may be there. When those are full, or the bytes of
// requests in flight exceed what the connection may hold (its own Allowance, and beyond that what the Budget of all
// connections has left), the peer is not read any further: TCP tells it so. The exception keeps two peers from waiting for
// each other: while a call of ours is unanswered, reading goes on for the sake of its reply, and what comes beyond the bound
// is answered -32000 (busy). A token bucket of Rate a second stops reading in the same way when it is empty, for a tenth of a
// second at least and a second at most. A request costs a token, its bytes, those of its reply and what its handler adds (Request.Cost) cost one each
// TokenBytes; replies of the peer cost none.
//
// Frames to be sent wait in a queue of Queue bytes. A reply waits for room, which holds its handler's place; a notification
// that finds no room is refused with ErrQueueFull, at once. A peer that takes no byte of a frame for WriteTimeout is dropped.
//
// # Ends
//
// Serve returns when the stream has ended, every handler has returned and no goroutine of the Conn is left; before that the
// context of handlers is cancelled and every unanswered call fails with ErrClosed. A peer that stops writing, and may still
// read, gets what is answered within a second: `printf '{…}\n' | nc -N -U socket` works. Shutdown ends a conversation in good
// order: requests that have begun are answered, new ones refused, the queue is written, then the stream is closed.
package jsonrpc
