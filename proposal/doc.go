// Package proposal runs the actions of a proposal: their order, their preconditions, what their failure comes to.
//
// Goals: what an agent proposes runs as its dependencies allow, and what is independent at once, under policies; every action
// has a result that says what became of it; and a proposal that is aborted leaves the state as if it had not been.
//
// A Proposal has actions of four types: tool_call (a registered tool, called through Tool.Call: this package calls nothing
// itself), state_write (parameters key and value), state_read (parameters key) and assertion (its preconditions, and nothing
// else). docs/reference/policy.md tells what policies judge.
//
// One action goes through these steps. The first that fails decides its status:
//
//  1. its tool is registered, and its parameters agree with the tool's JSON Schema: else rejected
//  2. its preconditions hold in the state, and what it depends on is there: else rejected (of an assertion: failed, in step 4)
//  3. every policy of the set allows it, or a person what policies leave to one: else rejected, with all violations
//  4. it runs, within timeout_ms, again after a failure where it may be repeated: succeeded or failed
//  5. its expected effects become part of the state
//
// What was rejected in 1 to 3 never ran. What failure_behavior is, decides how the proposal goes on after an action that was
// rejected or failed: abort (which is the default), and retry when nothing helped, skip all that follow and take back what the
// proposal wrote to the state; skip goes on.
// What runs already when an action aborts runs to its end; what waits for another attempt gets none.
//
// Ordering: an action comes after those that it depends on, and else where it stands; graph.hold says what waits besides. One
// action is decided on at a time, in that order; tools then run beside each other, at most MaxRunning. Results and the ends that
// Done is told stand in order too, whatever ended first. A cycle is an error of the whole, and nothing runs.
//
// State: a State keeps values of one connection, apart for each tenant, bounded. Rolling back puts back each key that the
// proposal wrote, unless somebody else has written it since: what another proposal wrote stays.
//
// Concurrency: an Executor runs any number of proposals at once; no goroutine of a proposal is left when Run returns. A cancelled
// context fails the actions that run, and skips the others.
//
// Not goals: knowing a wire, keeping results.
package proposal
