// Package policy decides whether a proposed action may run: rules, compiled into sets, and verdicts.
//
// Goals: every rule of a set judges every action, and everything that stands against it is collected, so that an agent learns
// all of it at once; a verdict, allowed or not, names what was judged and by what, by digests that anybody can compute again;
// a check costs less than a microsecond where only the three rules of the wire are in the set.
//
// A Rule is one of
//
//	deny_tool        the tool named target may not be called
//	deny_tool_param  the parameter key of the tool target may not hold the text pattern
//	require_state    the state's value of key must equal value
//	regex            the parameter key of the tool target may not match pattern (RE2)
//	expr             the expression in pattern (or, a text, in value) must not be true
//
// and docs/reference/policy.md has each with an example, the limits, and how a digest is made. Rules are data: they come from clients
// over the wire and from a file of policies (ReadFile), and a rule that is not understood as a whole is refused when it is
// compiled, by name and with what was expected. A rule never weakens: what cannot be judged (an expression that fails, a text
// too long for a pattern, parameters in which a key stands twice) is denied, and the reason says so.
//
// Digests. Of parameters: BLAKE3-256 of their canonical JSON (RFC 8785 with the departure that package canonjson states), of
// "{}" where there are none. Of a set: BLAKE3-256 of the canonical JSON of the array of its rules, in their order, each with
// the keys that are not empty. Neither is computed before somebody asks.
//
// Ordering: rules judge in the order in which they stand in the set, and violations stand in that order. A Set is immutable
// and may be used by several goroutines at once; With, Without and Join make new ones, which share what was compiled.
//
// What a reason says: rules' own texts and names of keys, never a value of a parameter or of the state; but the error of an
// expression that failed may name the value that it failed on.
//
// Not goals: keeping verdicts, asking people, knowing a wire. Nothing here reads a clock, a file (but ReadFile) or the network,
// so that equal sets judge equal actions in equal states equally at any time.
package policy
