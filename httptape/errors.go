package httptape

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
)

// ErrClosed is wrapped by the error of a request that comes after Close.
var ErrClosed = errors.New("httptape: request after Close")

// ErrInUse is wrapped by the error of opening a tape that another Transport of this process has open.
var ErrInUse = errors.New("httptape: tape in use")

// ErrUpgrade is wrapped by the error of a request that asks for another protocol, as a WebSocket does: it cannot be
// recorded. Options.Passthrough sends it on.
var ErrUpgrade = roundtrip.ErrUpgrade

// An UnmatchedError says that the tape does not answer a request. Nothing was sent.
type UnmatchedError struct {
	*roundtrip.UnmatchedError        // what was asked, scrubbed, the nearest recorded request, and what differs
	again                     string // how to record anew
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("httptape: not on the tape %s: %s %s; %s; undo what changed the request, or record again: %s",
		e.Tape, e.Method, e.URL, e.Why, e.again)
}

// A MissingTapeError says that a tape is to answer and is not there.
type MissingTapeError struct {
	Tape  string // its path
	Mode  Mode   // as the options have it
	again string
}

func (e *MissingTapeError) Error() string {
	why := e.Mode.String()
	if e.Mode != ModeReplayOnly {
		why += ", and CI or " + RecordVariable + "=0 forbids recording"
	}
	return fmt.Sprintf("httptape: no tape at %s (%s): record it with: %s", e.Tape, why, e.again)
}

// A DamagedError says that a recorded answer cannot be given, for its payload is missing or is not what was recorded.
type DamagedError = exchange.DamagedError

// A RecordedError is an error that an upstream gave while recording, given again. Of the kinds that
// exchange.RecordedError lists errors.Is and errors.As find what they found then; of any other only the text is left.
type RecordedError = exchange.RecordedError

// A DivergenceError is what Close returns where the tape and what was asked do not fit: requests that are not on the tape, or
// recorded exchanges that nobody asked for.
type DivergenceError struct{ Report *Report }

func (e *DivergenceError) Error() string { return "httptape: " + e.Report.String() }

// runCommand is the command that records the tape of a test; of a program that is no test where name is "".
func runCommand(test string) string {
	if test == "" {
		return RecordVariable + "=1, then run it again"
	}
	var parts []string
	for part := range strings.SplitSeq(test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("%s=1 go test -run '%s'", RecordVariable, strings.Join(parts, "/"))
}

// tapePath is the path of the tape that path names, with or without its suffix.
func tapePath(path string) string {
	if filepath.Ext(path) == tapeSuffix {
		return filepath.Clean(path)
	}
	return filepath.Clean(path) + tapeSuffix
}

// tapeSuffix ends the name of a tape.
const tapeSuffix = ".tape"
