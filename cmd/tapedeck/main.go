// Command tapedeck is the flight recorder for AI agents: it records every input that a run of an agent program consumed,
// replays the run offline as a closed world, and says where two runs differ and why.
//
// This package parses flags, prints and maps errors to exit statuses; everything else is in the packages it calls.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/deck"
	_ "github.com/tapedeck-dev/tapedeck/internal/addressspace"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	_ "github.com/tapedeck-dev/tapedeck/internal/jail/early" // first of all
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func main() {
	deck.Enter()
	startLoose()
	status := guarded()
	jail.NotNeeded()
	os.Exit(status)
}

// guarded runs the command line. One that panics ends with the status of a command that could not run: Go's own, 2, would
// read as a verdict.
func guarded() (status int) {
	defer func() {
		if p := recover(); p != nil {
			visible.Fprintf(os.Stderr, "tapedeck: this is a bug, please report it: %v\n", p)
			os.Stderr.Write(debug.Stack())
			status = statusFailed
		}
	}()
	return run(context.Background(), os.Args[1:], stdStreams())
}

// How the garbage of this process is collected. Who sets GOGC or GOMEMLIMIT decides instead.
//
// Most commands hold little and end soon: until the heap is 32 MB nothing is collected, at the start and after each collection. Where more
// is alive, garbage may come to what is alive.
//
// A recorder runs beside the program that it records, over whole trees of files: what it holds should stay small, and the
// garbage collector should not cost more for it. While little is alive it lets garbage grow to leanMemory; only where more is
// needed does it grow with that.
const (
	loosePercent = 800      // of the 4 MB at which Go would begin
	usualPercent = 100      // garbage by what is alive
	leanMemory   = 42 << 20 // bytes of the Go runtime; the program's own pages come on top, some 16 MB
	leanPercent  = 200      // garbage by what is alive, as long as that is little
)

// lean says that this process is a recorder.
var lean atomic.Bool

// startLoose begins so.
func startLoose() {
	if memoryIsSet() {
		return
	}
	debug.SetGCPercent(loosePercent)
	afterEachGC(func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Kind() != metrics.KindUint64 {
			return
		}
		alive := int64(live[0].Value.Uint64())
		if !lean.Load() {
			debug.SetGCPercent(percentFor(alive, usualPercent))
			return
		}
		debug.SetGCPercent(percentFor(alive, leanPercent))
		debug.SetMemoryLimit(memoryLimit(alive))
	})
}

// percentFor returns by how much of live bytes the heap may grow: by least percent, or as far as it did at the start.
func percentFor(live int64, least int) int {
	const heap = loosePercent * (4 << 20) / 100
	if 100*(heap-live) >= loosePercent*live {
		return loosePercent
	}
	return max(least, int(100*(heap-live)/live))
}

func memoryIsSet() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }

// boundMemory makes this process a recorder.
func boundMemory() {
	if !memoryIsSet() {
		lean.Store(true)
		debug.SetMemoryLimit(leanMemory)
	}
}

// memoryLimit returns the limit for a heap of which live bytes are in use: one that leaves room for garbage beside what the Go runtime
// itself needs, or the collector would hardly stop.
func memoryLimit(live int64) int64 { return max(leanMemory, live+live/2+leanMemory/3) }

// afterEachGC calls f after each collection, for as long as the process lives.
func afterEachGC(f func()) {
	type sign struct{ _ *sign } // with a pointer it has a place of its own
	s := new(sign)
	runtime.SetFinalizer(s, func(*sign) {
		afterEachGC(f) // before f, so that no collection comes in between unseen
		f()
	})
}
