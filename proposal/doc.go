// Package proposal runs the actions of a proposal: their order, their preconditions, what their failure comes to.
//
// Goals: what an agent proposes runs one action after another, in the order that its dependencies allow, under policies; every
// action has a result that says what became of it; and a proposal that is aborted leaves the state as if it had not been.
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
//
// Ordering: an action comes after those that it depends on, and else where it stands. One runs at a time. A cycle is an error
// of the whole, and nothing runs.
//
// State: a State keeps values of one connection, apart for each tenant, bounded. Rolling back puts back each key that the
// proposal wrote, unless somebody else has written it since: what another proposal wrote stays.
//
// Concurrency: an Executor runs any number of proposals at once; it starts no goroutine. A cancelled context fails the action
// that runs, and skips the others.
//
// Not goals: knowing a wire, keeping results, running actions in parallel.
package proposal
