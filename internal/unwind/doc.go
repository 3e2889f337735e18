// Package unwind tells from where in its program a thread has come: the return addresses on its stack, as the program's own
// tables have them (.eh_frame of the System V ABI, with its sorted index), read from the thread's memory.
//
// A Space is what one process has mapped. Chain walks a thread of it that stands in a system call, of which the program counter and the
// stack pointer are known and no other register. It therefore ends where a function finds its frame by the frame pointer and nobody
// has saved that, and where code has no tables. What it returns is the same for the same way through the same program files.
//
// Concurrency: a Space is used by one goroutine at a time.
//
// Not goals: other processors than amd64, names, lines, code that is made while the program runs.
package unwind
