// Command tapedeck is the flight recorder for AI agents: it records every input that a run of an agent program consumed,
// replays the run offline as a closed world, and says where two runs differ and why.
//
// This package parses flags, prints and maps errors to exit statuses; everything else is in the packages it calls.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// crash ends a command that panicked with the status of one that could not run: Go's own, 2, would read as a verdict.
func crash() {
	if p := recover(); p != nil {
		fmt.Fprintf(os.Stderr, "tapedeck: this is a bug, please report it: %v\n%s", p, debug.Stack())
		os.Exit(statusFailed)
	}
}

func main() {
	deck.Enter()
	defer crash()
	os.Exit(run(context.Background(), os.Args[1:], stdStreams()))
}
