package roundtrip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ErrUpgrade is wrapped by the error of a request that asks for another protocol, as a WebSocket does.
var ErrUpgrade = errors.New("upgrades are not carried here")

// A Transport is an http.RoundTripper. It may be used by several goroutines at once.
type Transport struct {
	opts  Options
	allow allowed
	next  http.RoundTripper // nil where nothing is let out
	own   *http.Transport   // the same where it is this package's; else nil
	book  *exchange.Book    // nil for none
	tap   *exchange.Tap
	calls atomic.Int64

	aborted context.Context // done once no answer is waited for any more
	abort   context.CancelFunc

	mu   sync.Mutex // guards what follows
	open map[*body]struct{}
	last map[exchange.Key]*exchange.Recorded // given last, for Repeat
}

// New returns a Transport. Options must have a Classifier. Errors: *AllowError; what reading the tape gives.
func New(o *Options) (*Transport, error) {
	if o == nil {
		o = new(Options)
	}
	t := &Transport{open: make(map[*body]struct{}), last: make(map[exchange.Key]*exchange.Recorded)}
	t.aborted, t.abort = context.WithCancel(context.Background())
	t.opts = *o
	t.fill()
	var err error
	if t.allow, err = parseAllow(t.opts.Allow); err != nil {
		return nil, err
	}
	if t.opts.Classifier == nil {
		return nil, errors.New("roundtrip: Options.Classifier is nil: what tells requests apart")
	}
	if t.next = t.opts.Next; t.next == nil && len(t.allow) > 0 {
		t.own = ownTransport()
		t.next = t.own
	}
	if t.opts.Tape != nil {
		if t.book, err = t.opts.Tape.book(t.opts.Classifier); err != nil {
			return nil, err
		}
	}
	t.Record(nil)
	return t, nil
}

// fill puts what is meant in the place of what is left out.
func (t *Transport) fill() {
	o := &t.opts
	if o.Scrubber == nil {
		var rules scrub.Options
		if o.Tape != nil {
			rules.Rules = o.Tape.Rules
		}
		o.Scrubber = bare.NewScrubber(&rules)
	}
	if o.Timed {
		o.Speed = 1
	}
	if o.Outside == nil {
		o.Outside = func(_ context.Context, f func() error) error { return f() }
	}
	if o.NowMS == nil {
		o.NowMS = func() int64 { return 0 }
	}
	if o.Kept == nil {
		o.Kept = func(h http.Header) http.Header { return h }
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
}

// Record says where exchanges are recorded; nil is nowhere. It is called before the first request.
func (t *Transport) Record(rec *tape.Recorder) {
	o := &exchange.TapOptions{Replay: t.book != nil, Closed: t.next == nil, MaxBody: t.opts.MaxBody}
	if !t.opts.Machine {
		o.NowMS = t.opts.NowMS
	}
	t.tap = exchange.NewTap(rec, t.opts.Classifier, t.opts.Scrubber, o)
}

// RoundTrip implements http.RoundTripper. Errors: *DeniedError, *UnmatchedError, *exchange.DamagedError, *exchange.RecordedError
// for a request whose upstream gave an error while recording; what Next gives.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := exchange.ReadBody(req, t.opts.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	call := int(t.calls.Add(1))
	asked := exchange.RequestOf(req, body)
	if name := req.Header.Get("Upgrade"); name != "" {
		return nil, fmt.Errorf("%w: call %d, %s %s, asks for %s", ErrUpgrade, call, asked.Method, t.shown(asked), name)
	}
	if t.book == nil && !t.lets(req) {
		return nil, t.denied(req, asked, call)
	}
	if t.opts.Change != nil {
		t.opts.Scrubber.LearnHeader(req.Header)
		t.opts.Change(asked)
	}
	return t.exchange(req, body, asked, call)
}

// exchange answers a request, or sends it on.
func (t *Transport) exchange(req *http.Request, body []byte, asked *exchange.Request, call int) (*http.Response, error) {
	o, err := t.tap.BeginFrom(t.book, asked)
	if err != nil {
		err = fmt.Errorf("request cannot be recorded: %w", err)
		_ = t.kept(err)
		return nil, err
	}
	if rec := t.take(o); rec != nil {
		return t.answer(req, o, rec)
	}
	if t.lets(req) {
		return t.live(req, body, o)
	}
	return nil, t.unmatched(o, call)
}

// take finds the recorded exchange that answers a request; nil for none.
func (t *Transport) take(o *exchange.Open) *exchange.Recorded {
	if t.book == nil {
		return nil
	}
	take := o.Take
	if t.opts.InOrder {
		take = o.TakeNext
	}
	rec, ok := take(t.book)
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := o.Key(); t.opts.Repeat && ok {
		t.last[key] = rec
	} else if t.opts.Repeat {
		rec = t.last[key]
	}
	if rec == nil {
		return nil
	}
	if t.opts.Answered != nil {
		t.opts.Answered(o.Arrival())
	}
	return rec
}

// kept is what becomes of an error of recording.
func (t *Transport) kept(err error) error {
	if err == nil || t.opts.Failed == nil {
		return err
	}
	t.opts.Failed(err)
	return nil
}

// lets reports whether a request may be sent.
func (t *Transport) lets(req *http.Request) bool {
	switch {
	case t.next == nil:
		return false
	case len(t.allow) == 0:
		return true
	}
	return t.allow.has(req.URL.Scheme, req.URL.Host) && (req.Host == "" || t.allow.has(req.URL.Scheme, req.Host))
}

func (t *Transport) denied(req *http.Request, asked *exchange.Request, call int) error {
	e := &DeniedError{Call: call, Method: asked.Method, URL: t.shown(asked), Host: hostToAllow(req.URL.Scheme, req.URL.Host)}
	if t.allow.has(req.URL.Scheme, req.URL.Host) { // the name that it asks by is another
		e.Host = hostToAllow(req.URL.Scheme, req.Host)
	}
	if from := req.Response; from != nil && from.Request != nil {
		e.From = t.shown(exchange.RequestOf(from.Request, nil))
	}
	return e
}

func (t *Transport) unmatched(o *exchange.Open, call int) error {
	r := o.Request()
	e := &UnmatchedError{Tape: t.opts.Tape.Name, Call: call, Method: r.Method, URL: r.URL, Asked: o.Asked(), Identity: o.Identity()}
	e.Nearest, e.Why = t.book.Nearest(o.Identity(), r)
	return e
}

// Unasked lists, by arrival, what the tape holds and nobody asked for so far.
func (t *Transport) Unasked() []*exchange.Recorded {
	if t.book == nil {
		return nil
	}
	return t.book.Unasked()
}

// Damaged lists the answers of the tape that could not be given whole, for people.
func (t *Transport) Damaged() []string {
	if t.book == nil {
		return nil
	}
	return t.book.Damaged()
}

// Abort ends the requests whose upstream has not begun to answer, and all that come later.
func (t *Transport) Abort() { t.abort() }

// Close ends the answers that are still open, in the order in which their requests came, and closes idle connections. Who asks
// afterwards is answered all the same.
func (t *Transport) Close() error {
	t.mu.Lock()
	left := make([]*body, 0, len(t.open))
	for b := range t.open {
		left = append(left, b)
	}
	t.mu.Unlock()
	slices.SortFunc(left, func(a, b *body) int { return cmp.Compare(a.o.Arrival(), b.o.Arrival()) })
	var errs []error
	for _, b := range left {
		errs = append(errs, b.Close())
	}
	if t.own != nil {
		t.own.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// shown is the URL of a request as errors tell it.
func (t *Transport) shown(r *exchange.Request) string {
	t.opts.Scrubber.LearnHeader(r.Header)
	t.opts.Scrubber.LearnURL(r.URL)
	return t.opts.Scrubber.URL(r.URL)
}

// A Tape is what answers.
type Tape struct {
	Name    string // for errors
	Records []*tape.Record
	Store   cas.Store // of their payloads; nil where all are inline
	Rules   int       // by which secrets were found; 0 for the newest
}

// runTape is the tape in the directory of a recording.
const runTape = "run.tape"

// OpenTape reads a tape: a bare one, or that of a recording, whose directory path is then. Its blobs are read where they are
// needed.
func OpenTape(path string) (*Tape, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, runTape)
	}
	f, err := tape.Open(file, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, fmt.Errorf("network tape: %w", err)
	}
	defer f.Close()
	t := &Tape{Name: path, Store: f.Store}
	if t.Rules, err = bare.RulesOf(f.Header()); err != nil {
		return nil, fmt.Errorf("network tape %s: %w", path, err)
	}
	for r, err := range f.Records() {
		if err != nil {
			return nil, fmt.Errorf("network tape: %w", err)
		}
		if isExchange(r) {
			t.Records = append(t.Records, r)
		}
	}
	return t, nil
}

// isExchange reports whether a record says what was asked over HTTP. A call of a model that no URL names was none: package
// fixture answers it.
func isExchange(r *tape.Record) bool {
	x := tape.ExchangeOf(r.Kind)
	return x != nil && x.URL != ""
}

// book is what the tape answers with.
func (t *Tape) book(c exchange.Classifier) (*exchange.Book, error) {
	var records iter.Seq2[*tape.Record, error] = func(yield func(*tape.Record, error) bool) {
		for _, r := range t.Records {
			if isExchange(r) && !yield(r, nil) {
				return
			}
		}
	}
	return exchange.NewBook(records, c, t.Store)
}

// DefaultMaxBody is the length in bytes of the longest body, of a request or of an answer: 64 MiB.
const DefaultMaxBody = exchange.DefaultMaxBody

// Options say where answers come from. But for Classifier zero works, and denies everything.
type Options struct {
	// Classifier says what a request is. It is needed.
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
