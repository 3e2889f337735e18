// Package trace stops a thread inside for a moment, as a debugger does: to have it make another call than the one that it waits in, to
// see what the kernel has answered, or what its execve has made of it. Nothing stays traced, and nothing is written into memory that may be another process's too.
//
// The kernel knows a tracer by its thread: what Seize began ends on the same one, to which the caller is locked. A thread that a debugger
// inside has already cannot be stopped: EPERM.
//
// Stub is a program of some hundred bytes that waits for its exit status, to be executed by its descriptor in the place of another one.
//
// Not goals: which threads, and why. On systems other than Linux there is nothing here.
package trace
