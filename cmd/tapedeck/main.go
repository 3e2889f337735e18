// Command tapedeck is the flight recorder for AI agents: it records every input that a run of an agent program consumed,
// replays the run offline as a closed world, and says where two runs differ and why.
//
// This package parses flags, prints and maps errors to exit statuses; everything else is in the packages it calls.
package main

import (
	"context"
	"os"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func main() {
	deck.Enter()
	os.Exit(run(context.Background(), os.Args[1:], stdStreams()))
}
