// Command tapedeck is the flight recorder for AI agents: it records every input that a run of an agent program consumed,
// replays the run offline as a closed world, and says where two runs differ and why.
//
// This package parses flags, prints and maps errors to exit statuses; everything else is in the packages it calls.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/tapedeck-dev/tapedeck/deck"
	_ "github.com/tapedeck-dev/tapedeck/internal/addressspace" // first of all
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func main() {
	deck.Enter()
	os.Exit(guarded())
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
