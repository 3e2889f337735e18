// Package notify receives the calls that a jail's filter notifies, and answers them: with an error, with a value, with a descriptor, or by
// letting the kernel carry them out.
//
// A Call waits until it is answered, once. What is read of its caller meanwhile is the caller's only if Waits says so afterwards: its number
// may be another's by then. Answers that cannot be given mean that the caller is gone, and are dropped.
//
// Serve receives on a thread that stays the same for a call: who traces a caller is known to the kernel by its thread. Where a call leaves
// its thread something to wait for, another thread receives meanwhile.
//
// Not goals: what becomes of a call. On systems other than Linux there is nothing here.
package notify
