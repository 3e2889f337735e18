// Package daemon tells a run to a tapedeck daemon while it is recorded: each tool call of its main conversation becomes a turn
// there. The tape is its queue, so that a daemon that is slow, gone or restarting holds nobody up and costs no memory.
//
// Goals: every turn once, in the order of the calls; what the daemon does not have is said. Not goals: holding a call back for a
// verdict.
package daemon
