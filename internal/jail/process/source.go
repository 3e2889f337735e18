// Package process is the one table of what is known of the processes inside a jail: which threads are whose, who forked whom, which program
// each has become and who answers what it asks, what is being done with a thread's call, and how each ends.
//
// A Process stands in the Table from the first time that somebody has to do with it until it has ended, which one goroutine hears of for all.
// Each is held by a descriptor, so that its number is its own that long. Deciders keep what they decided in it: who has the Table's lock may
// read and change what it holds.
//
// How a process ended is read in /proc while nobody waited for it, and asked of its descriptor afterwards, which Linux 6.15 and newer
// answer. Before that it may stay unknown.
//
// Not goals: deciding anything. On systems other than Linux there are only the types.
package process

import (
	"context"
	"syscall"
)

// An Exit is how a program ended: Signal is 0 unless a signal ended it.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

// Ended says how a process ended.
type Ended struct {
	Exit  Exit
	Known bool // false: the process is gone, and this kernel does not tell how it ended
	Left  bool // it lived when the jail's program had ended or the jail was closed: what is left is killed then
	Again bool // of a Program alone: the process lives, as another one
}

// A Filler makes random bytes.
type Filler interface {
	// Fill fills b with random bytes.
	Fill(b []byte)
}

// A Source answers one process, all of its threads. A place tells where in its program the process asks, by a digest of how it came
// there (internal/unwind), so that what runs side by side is told apart; 0 where that is not known.
type Source interface {
	// Now is one read of the wall time, in ns since 1970.
	Now(place uint64) int64
	// Behind is by how many ns Now lies behind the kernel's wall time, without reading it.
	Behind() int64
	// Elapses reports whether Now is asked for what the package time of a Go program makes of the monotonic clock too.
	Elapses() bool
	// Fill fills b with random bytes.
	Fill(place uint64, b []byte)
	// Tick is one read of the monotonic clock, in ns, and TickBehind by how many it lies behind the kernel's, without reading it. They
	// are asked for processes of programs alone that read it now and then.
	Tick(place uint64) int64
	TickBehind() int64
	// Asked is told of a question that only the kernel can answer, about the file at path or about none: "statfs", "sysinfo", "times", "read" of a
	// file of /proc, …, and of its answer now. It returns that, or another one of the same length (but for "read", which may be nil: there
	// is no such file).
	Asked(what, path string, now []byte) []byte
	// Wrote is told that the process asks for the file at path, of so many bytes, which was written at a time, in ns since 1970, and changed
	// otherwise then or later. It returns the time at which that is said to have been written.
	Wrote(path string, size, at, changed int64) int64
	// Opened is told of an open of /dev/random or /dev/urandom, and returns what is read from it.
	Opened() Filler
	// Beginning is told of a program before its first instruction. Ending's words hold for what it returns.
	Beginning() (wait func(ctx context.Context))
	// Forking is told of a thread of the process, or of a process that it has forked, before its first own instruction, by its number as the
	// recorder's PID namespace knows it, where each thread of the process has a Source of its own. Ending's words hold for what it returns.
	Forking(task int, thread bool) (wait func(ctx context.Context))
	// Waking is told of a thread of the process, of those that each have a Source of their own, that wakes another one. Ending's words hold for
	// what it returns.
	Waking() (wait func(ctx context.Context))
	// Finding is told of the number, inside, of a process that the process is about to be told of. Ending's words hold for what it returns.
	Finding(pid int) (wait func(ctx context.Context))
	// Sleeping is told of a thread, of those that each have a Source of their own, that sleeps until a moment. What it returns is called by a
	// goroutine of its own when that has come, and the thread wakes when that returns, which it does once ctx is done; woken is called when it
	// has. Nil has it sleep in the kernel.
	Sleeping() (wait func(ctx context.Context) (woken func()))
	// Ending is told of a process that is about to end by itself, and how, before anybody learns of it, and may ask who reads what it writes: whether it
	// writes to a pipe, and who has that as input. What it returns is called by a goroutine of its own, and the process ends when that returns,
	// which it does once ctx is done: by the signal, where there is one. Nil lets it end at once.
	Ending(how Exit, readers func() (all []Source, piped bool)) (wait func(ctx context.Context) syscall.Signal)
	// Leaving is told of a process that is about to leave its standard input, before it ends too, and may ask who feeds it: who has the
	// pipe that it alone reads from as output. Ending's words hold for what it returns.
	Leaving(feeders func() []Source) (wait func(ctx context.Context))
	// Port is the port of a socket of the Internet that the process leaves to its kernel, as PortOf makes one. Where that is taken
	// it is asked for another.
	Port() uint16
	// Has is told of the port that a socket of the process has, where the kernel chose it all the same; 0 for none.
	Has(port uint16)
}

// A Program is what a process became by an execve, or by a fork.
type Program struct {
	Parent Source   // of the process that executed it, or of the one that forked that; nil for the jail's program
	Forked bool     // it has executed nothing, or is a thread: Path, Argv and Dir are its parent's, and not told again
	Thread bool     // a thread of its parent, or several: PID is 0 then
	Nth    uint64   // which thread of its parent this is, or executed it, by who made it (process.Table.Makes); 0 for the first, or not told apart
	Before int      // of a process that only forked: how many that its parent forked before live, and have neither asked nor executed anything
	PID    int      // inside
	Host   int      // the same process, as the recorder's PID namespace knows it
	Path   string   // as the call spelled it; of a script, the script
	Argv   []string // as the program finds it; at most 1,024, of 128 KiB in all
	Handed []int    // of Argv, those that are the number of a pipe or socket that its parent left open for it: which number is chance
	Dir    string   // working directory, as the program sees it; empty where it cannot be told

	OwnTicks bool // its monotonic clock is the kernel's: it is a runtime that reads that all the time
}
