package roundtrip

import (
	"context"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// DefaultMaxBody is the length in bytes of the longest body, of a request or of an answer: 64 MiB.
const DefaultMaxBody = exchange.DefaultMaxBody

// Options say where answers come from. Nil and zero deny everything.
type Options struct {
	// Classifier says what a request is. Nil knows no provider: a request is its method, URL and body, JSON in canonical form.
	Classifier exchange.Classifier
	// Scrubber finds the secrets of requests and answers before they are matched and recorded. Nil is one of this Transport
	// alone. Who cleans what a recorder gets (tape.RecorderOptions.Clean) gives the same one here.
	Scrubber *scrub.Scrubber

	// Tape answers; nil for none. A request that it does not hold goes to Next where Allow names its host, and is else an
	// *UnmatchedError.
	Tape *Tape
	// InOrder answers from Tape in recorded order, whatever is asked: for one of another producer.
	InOrder bool
	// Timed lets each chunk of an answer of Tape wait (Wait) until it is as late as it was then. Without it all come at once, and
	// the t_ms of what is recorded are 0.
	Timed bool

	// Allow names the hosts that are really asked, each HOST or HOST:PORT, IPv6 in brackets or without. A name stands for itself
	// alone: not for names below it, nor for its address. Without a port it is that of the scheme.
	Allow []string
	// Next sends what is let out. Nil is a transport of this package, which asks no proxy of the environment. Where Allow is
	// empty all goes to a Next that is not nil: whoever gives one answers for it.
	Next http.RoundTripper
	// Outside is called around what really waits, for a clock on which others may go on meanwhile; nil calls f.
	Outside func(ctx context.Context, f func() error) error

	// Wait lets time pass on the run's clock: for Timed, and for an answer that the program is to end as it did while recording.
	// Nil does not wait.
	Wait func(ctx context.Context, d time.Duration) error
	// NowMS is the run's clock in ms, from any beginning: chunks of live answers are timed by it. Nil makes all 0.
	NowMS func() int64

	// Machine has the run go by the machine's clock, and not by Wait, NowMS, Timed and Outside: chunks of live answers are timed by it and
	// have ordinals, go to the recorder's store as they come and have no bound; those of Tape come Speed times as fast as they did, 0 at
	// once, their head with the first, and of an exchange that Tape answers the request alone is recorded, at once.
	Machine bool
	Speed   float64
	// Change makes of a request what is matched and recorded in the place of what is sent: another header, and bytes of its own. Nil
	// leaves it.
	Change func(r *exchange.Request)
	// Kept is what is recorded of a header or of trailers of a live answer; nil is all.
	Kept func(http.Header) http.Header
	// Repeat lets the last recorded answer to a request serve again once all have been given.
	Repeat bool
	// Answered is told of the arrival of each request that Tape answers; nil is nobody.
	Answered func(arrival uint64)
	// Failed is told of what cannot be recorded, which is then no reason to keep an answer from its program. Nil makes it an error of
	// the answer.
	Failed func(err error)

	// MaxBody bounds bodies in bytes; 0 is DefaultMaxBody. A longer one ends with an error that wraps exchange.ErrTooLarge.
	MaxBody int64
}
