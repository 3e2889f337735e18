package roundtrip

import (
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A DeniedError says that a request was not let out, and that no tape is there to answer it. Nothing was sent, and no name was
// resolved.
type DeniedError struct {
	Call        int    // its number among all requests of the Transport, from 1
	Method, URL string // what was asked, scrubbed
	Host        string // of the URL, with its port where that is not the scheme's: what Allow would have to name
	From        string // of a redirect: the URL that led here; "" for none
}

func (e *DeniedError) Error() string {
	text := fmt.Sprintf("network denied: call %d asked %s %s", e.Call, e.Method, e.URL)
	if e.From != "" {
		text += ", to which " + e.From + " redirects"
	}
	return text + "; answer it from a recording or a tape (--net REC, Config.Net.Tape), or let it out (--net allow=" + e.Host +
		", Config.Net.Allow)"
}

// An UnmatchedError says that the tape does not answer a request. Nothing was sent.
type UnmatchedError struct {
	Tape        string // its name
	Call        int    // the number of the request among all of the Transport, from 1
	Method, URL string // what was asked, scrubbed
	// Nearest is the recorded request that is most like it, nil where the tape holds none to its host. Why says what differs,
	// or that it was asked more often than it was recorded.
	Nearest *exchange.Recorded
	Why     string
	// Asked is the record that the exchange would have, without an answer, and Identity what was matched of it.
	Asked    tape.Kind
	Identity *exchange.Identity
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("not on the tape %s: call %d asked %s %s; %s; undo what changed the request, or record again",
		e.Tape, e.Call, e.Method, e.URL, e.Why)
}

// An AllowError says that an entry of Options.Allow is no host.
type AllowError struct{ Entry string }

func (e *AllowError) Error() string {
	want := "want HOST or HOST:PORT"
	if strings.Contains(e.Entry, "*") {
		want = "names are exact, write each: " + want
	}
	return fmt.Sprintf("allow %q: %s", e.Entry, want)
}
