package httptape

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
)

// A Report says what a Transport did so far.
type Report struct {
	Tape     string // path of the tape
	Mode     Mode   // what it does: never ModeRecordOnce, which is decided when a Transport is opened
	Recorded int    // exchanges that were sent and recorded
	Answered int    // requests that the tape answered
	// Unmatched are the requests that the tape did not answer, each once, in order; Unasked are the recorded exchanges that
	// nobody asked for so far, by arrival. The latter is empty in ModeReplayWithNewEpisodes, which keeps them.
	Unmatched []*UnmatchedError
	Unasked   []*exchange.Recorded
	Damaged   []string       // answers that could not be given whole, for people
	Masks     map[string]int // volatile facts that were masked to compare requests, by mask
	Secrets   map[string]int // secrets that were hidden, by name or rule
	// NotCovered names secrets that are too short or too common to be searched for everywhere: they are hidden in headers
	// and queries alone.
	NotCovered []string
}

// maxListed is how many requests String lists of each sort.
const maxListed = 10

// String says in a few lines what does not fit, or that all does.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d answered, %d recorded", r.Tape, r.Answered, r.Recorded)
	for i, e := range r.Unmatched {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(r.Unmatched)-i)
			break
		}
		fmt.Fprintf(&b, "\n  asked for and not recorded: %s %s\n    %s", e.Method, e.URL, e.Why)
	}
	for i, rec := range r.Unasked {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(r.Unasked)-i)
			break
		}
		fmt.Fprintf(&b, "\n  recorded and never asked for: %s %s (record %d)", rec.Exchange.Method, rec.Exchange.URL, rec.Seq)
	}
	for _, text := range r.Damaged {
		fmt.Fprintf(&b, "\n  damaged: %s", text)
	}
	return b.String()
}

// Report says what t did so far. It may be called after Close.
func (t *Transport) Report() *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Report{
		Tape: t.path, Mode: t.mode, Recorded: t.recorded, Answered: t.answered,
		Unmatched: slices.Clone(t.unmatched),
	}
	if t.mode == ModePassthrough {
		return r
	}
	r.Masks, r.Secrets, r.NotCovered = t.classifier.masker.Used(), t.secrets.Counts(), t.secrets.NotCovered()
	r.Damaged = t.trip.Damaged()
	if t.mode == ModeReplayOnly {
		r.Unasked = t.trip.Unasked()
	}
	return r
}

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
