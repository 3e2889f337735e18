package jail

import (
	"context"
	"encoding/binary"
)

// Inputs gives wall time and randomness to what runs inside, in the kernel's place: see "Inputs" in the package comment.
// Its method, and those of a Source, are called by several goroutines and must not block: calls inside wait for them.
type Inputs interface {
	// Started is told of an execve that succeeded, before the program's first instruction, and of a process that asks for
	// something without having executed anything since it was forked. What it returns answers the process from then on.
	Started(p *Program) Source
	// Ended tells how the process of a Source that Started returned has ended, or that it became another Program, once.
	Ended(s Source, e Ended)
	// Reads is told of each path that is about to be opened for reading, as the call spells it, and not by what walks trees.
	Reads(path string)
}

// A Filler makes random bytes.
type Filler interface {
	// Fill fills b with random bytes.
	Fill(b []byte)
}

// InputGap is what texts of Jail.NotCovered begin with that are about Inputs.
const InputGap = "time and randomness"

// A Source answers one process, all of its threads. A place tells where in its program the process asks, by a digest of how it came
// there (internal/unwind), so that what runs side by side is told apart; 0 where that is not known.
type Source interface {
	// Now is one read of the wall time, in ns since 1970.
	Now(place uint64) int64
	// Behind is by how many ns Now lies behind the kernel's wall time, without reading it.
	Behind() int64
	// Fill fills b with random bytes.
	Fill(place uint64, b []byte)
	// Tick is one read of the monotonic clock, in ns, and TickBehind by how many it lies behind the kernel's, without reading it. They
	// are asked for processes of programs alone that read it now and then.
	Tick(place uint64) int64
	TickBehind() int64
	// Asked is told of a question that only the kernel can answer, about the file at path or about none: "statfs", "sysinfo", "read" of a
	// file of /proc, …, and of its answer now. It returns that, or another one of the same length (but for "read").
	Asked(what, path string, now []byte) []byte
	// Opened is told of an open of /dev/random or /dev/urandom, and returns what is read from it.
	Opened() Filler
	// Ending is told of a process that is about to end by itself, before anybody learns of it. What it returns is called by a
	// goroutine of its own, and the process ends when that returns, which it does once ctx is done. Nil lets it end at once.
	Ending() (wait func(ctx context.Context))
	// Port is the port of a socket of the Internet that the process leaves to its kernel, as PortOf makes one. Where that is taken
	// it is asked for another.
	Port() uint16
}

// A Program is what a process became by an execve, or by a fork.
type Program struct {
	Parent Source   // of the process that executed it, or of the one that forked that; nil for the jail's program
	Forked bool     // it has executed nothing, or is a thread: Path, Argv and Dir are its parent's, and not told again
	PID    int      // inside
	Host   int      // the same process, as the recorder's PID namespace knows it
	Path   string   // as the call spelled it; of a script, the script
	Argv   []string // as the program finds it; at most 1,024, of 128 KiB in all
	Handed []int    // of Argv, those that are the number of a pipe or socket that its parent left open for it: which number is chance
	Dir    string   // working directory, as the program sees it; empty where it cannot be told

	OwnTicks bool // its monotonic clock is the kernel's: it is a runtime that reads that all the time
}

// PortOf makes of random bytes one of the ports that Linux chooses from by itself.
func PortOf(random Filler) uint16 {
	const first, last = 32768, 60999
	var b [4]byte
	random.Fill(b[:])
	return uint16(first + binary.LittleEndian.Uint32(b[:])%(last-first+1))
}

// SameFile reports whether two structs statx, which are answers of Asked, agree in owner, mode and size.
func SameFile(a, b []byte) bool { return len(a) == len(b) && lasting(a) == lasting(b) }

// lasting is what does not change by itself.
func lasting(b []byte) [3]uint64 {
	return [3]uint64{binary.NativeEndian.Uint64(b[20:]), uint64(binary.NativeEndian.Uint16(b[28:])), binary.NativeEndian.Uint64(b[40:])}
}
