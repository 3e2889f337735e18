// Package rpcapi holds what the daemon's methods take and give: one struct for the params and one for the result of each
// method, the names of the methods, the codes of the errors. The definition is spec/agent-daemon.md, which is wire-compatible
// with the public CAR protocol for these methods.
//
// Goals: both sides of the wire (package client, the daemon) and whoever reads its replies share one definition.
//
// Non-goals: it calls nothing and checks nothing. What is decided about a value (a run id that is no plain name, a version
// that is not spoken) is decided by the daemon.
//
// Grammar: JSON. Input is lenient: keys that are not known are ignored, absent and null are the same, and but for what the
// comment of a field calls required all may be absent. Output is exact: every key that a comment does not call optional
// stands in every reply, lists are [] and never null.
//
// Compatibility: a field is never renamed or removed within a ProtocolVersion; new optional ones may come. Methods and fields
// that the public protocol does not have are marked "ours".
package rpcapi
