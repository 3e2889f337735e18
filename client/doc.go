// Package client speaks to a daemon (tapedeck serve): it starts runs and records their turns, submits proposals and serves the
// tools that the daemon calls back, follows traces.
//
//	c, err := client.Dial(ctx, "ws://127.0.0.1:9100", &client.Options{AgentID: "coder", Tools: []client.Tool{read}})
//	run, err := c.Start(ctx, rpcapi.RunsStartParams{Intent: "fix the build"})
//	result, err := c.Submit(ctx, &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "read", …}}})
//	err = run.Complete(ctx, rpcapi.Outcome{Status: "success"})
//
// Goals: every method of the daemon, typed by package rpcapi; tools as Go functions; a connection that is made again when it is
// lost; traces without a gap and without a duplicate.
//
// Non-goals: it decides nothing and keeps nothing. What a tool may do is decided by the daemon, what happened is kept by it.
//
// # Addresses and tokens
//
// A URL is ws://HOST:PORT (wss:// behind a proxy that ends TLS), or unix:PATH for a daemon's socket. A daemon on this machine
// leaves its token where only its own user can read it; Dial finds it by the URL, and reads it again at each connection, for
// every start of a daemon has another. Options.Token is for a daemon elsewhere. Options.Host asks for the host's token: it reads
// the runs of every agent and writes none.
//
// # Tools
//
// A tool is called in a goroutine of its own while calls of the program are in flight, and several at once. Its context ends
// when the daemon cancels the call (context.Cause is then a *CancelledError), when its deadline has passed, and when the
// connection is lost. What it returns is the output as it is; what it returns as an error, or panics with, is the failure.
//
// # Connections that are lost
//
// Tools, policies and state belong to a connection, runs outlive it. When a connection is lost the client makes another, with
// growing pauses, until Close. Before anything else it authenticates, registers its tools and its global policies again, and
// starts its open runs again by their ids, so that a daemon that waits for them (serve --grace) does not end them as incomplete.
// State that was set, and policy sessions, are gone: a policy that requires state denies until it is set again.
//
// A call made while there is no connection waits for one, at most Options.Patience. A call that was in flight when the connection
// was lost fails with ErrLost, and is never sent twice: whether it was done is in the trace. Subscribe goes on where it was.
//
// # Ordering
//
// Calls of one goroutine arrive in its order. Calls of several goroutines, and tools called back, have none. Records of a
// subscription come in the order of the run's file.
//
// # Errors
//
// What the daemon refuses is an *Error; errors.Is tells its code: errors.Is(err, client.AuthRequired). A batch of turns that was
// not recorded is a *DroppedError, a run that is not there, or not one's own, ErrNotFound. What was taken back from a tool is
// never an error of a call: it is in the result.
package client
