package httptape

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
