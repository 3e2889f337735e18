// Package inputs answers, in the kernel's place, what the processes inside ask it for and no two runs get alike. It decides which calls those
// are, which process, or which of its threads, asks, from where in its program, and what is done to a new program so that it asks at all.
//
// The recorder answers for what processes ask the kernel that no two runs get alike: clock_gettime, gettimeofday, time, getrandom, and
// (Source.Asked) what the machine is like at the moment: opens of certain files of /proc by a path from the root, statfs, sysinfo, times, what
// a process used (getrusage, its clock of processor time), statx as stat and ls -i make it. Of a file that the run wrote the recorder says
// when that was, to who asks by its path (Source.Wrote). At each execve the caller is stopped for a moment, as a debugger would, before the
// new program's first instruction: the functions of its vDSO get code that makes these calls (package vdso), again after a signal (EINTR), and
// its AT_RANDOM bytes are replaced, and a Go program's own generator is (package gorandom); then it goes on, and nothing stays traced. Where
// the vDSO is not known AT_SYSINFO_EHDR of its auxiliary vector becomes AT_IGNORE: the C library, Go and others make the calls themselves
// then. Addresses are not randomised; where clocks lie behind the kernel's, a library in an overlay is mapped from the layer that has it, for
// the kernel aligns it there. An open of /dev/random or /dev/urandom by that path gives a pipe of its own that the recorder fills.
//
// The monotonic clock of Go programs and of large runtimes, which read it all the time, is the kernel's: their functions make the call for
// the wall time alone. Where a clock that is given lies behind the kernel's (jail.Config.Shifted), waits for a moment of it (futex, mutexes with
// priority inheritance, clock_nanosleep, timerfd_settime and timer_settime with an absolute time, mq_timedsend and mq_timedreceive) are made
// again with another one, which is written below the stack of the thread, where nobody keeps anything. A program may be held up before its first
// instruction (Source.Beginning), its parent is not; a process that ends by itself at its
// exit_group (Source.Ending), and its files are open until it goes on; and one that closes its standard input, or ends with it (Source.Leaving).
//
// A process is known by its threads. A fork is a process of its own from the first time that it asks; its parent is who forked it. A
// thread of Python or Ruby is like a fork, and so are together all threads but the first of others than Go. Of these others each
// question comes with a place: a digest of how the thread came to ask (internal/unwind), for which its stack is read while it waits
// for the answer. A program that a debugger inside has started cannot be stopped, asks the kernel, and is counted (Answerer.Untraced).
// rdtsc and rdrand are the processor's own.
//
// Not goals: what the answers are. On systems other than Linux there are only the types.
package inputs

import "github.com/tapedeck-dev/tapedeck/internal/jail/process"

// Sources makes what gives wall time and randomness to what runs inside, in the kernel's place. Its methods, and those of a Source, are
// called by several goroutines and must not block: calls inside wait for them.
type Sources interface {
	// Started is told of an execve that succeeded, before the program's first instruction, and of a process that asks for
	// something without having executed anything since it was forked. What it returns answers the process from then on.
	Started(p *process.Program) process.Source
	// Ended tells how the process of a Source that Started returned has ended, or that it became another Program, once.
	Ended(s process.Source, e process.Ended)
	// Reads is told of each path that is about to be opened for reading, as the call spells it, and not by what walks trees.
	Reads(path string)
	// Changing reports whether the run has changed a file: the Source of who asks for one that was written since says when that was.
	Changing() bool
	// Recent reports whether a time, in ns since 1970, is one at which the run may have written a file.
	Recent(at int64) bool
}

// Gap is what texts of what is not covered begin with that are about this.
const Gap = "time and randomness"
