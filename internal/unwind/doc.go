// Package unwind tells from where in its program a thread has come: the return addresses on its stack, as the program's own
// tables have them (.eh_frame of the System V ABI, with its sorted index), read from the thread's memory.
//
// A Space is what one process has mapped. Chain walks a thread of it that stands in a system call, of which the program counter and the
// stack pointer are known and no other register. Where a function finds its frame by the frame pointer, which nobody has saved, or has
// no tables, the return address is the first word on the stack that a call of this very function returns to; behind that frame pointers
// are followed. A call out of the code that the kernel maps for the time is of who called that. It ends where code is of no file. What it returns is the same for the same way through the same program files, and
// seldom another: nothing may depend on its being right but which of a program's questions count as one.
//
// What is read is the program's to write: all of it is bounded.
//
// Concurrency: a Space is used by one goroutine at a time.
//
// Not goals: other processors than amd64, names, lines, code that is made while the program runs.
package unwind
