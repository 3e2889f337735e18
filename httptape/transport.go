package httptape

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Transport is an http.RoundTripper that records what it sends, or answers from a tape. It must be closed. It may be used
// by several goroutines at once.
type Transport struct {
	opts       Options
	mode       Mode   // decided: never ModeRecordOnce
	path       string // of the tape, as it was named
	real       string // the same, absolute
	again      string // how to record it
	classifier *classifier
	secrets    *secrets
	tap        *exchange.Tap
	drop       []string // headers that do not reach the tape, canonical

	// Of a tape that answers; nil while recording.
	book  *exchange.Book
	blobs *cas.Dir

	work *workshop // where a recording is made; nil in ModeReplayOnly

	ending   sync.Once
	endErr   error
	inFlight sync.WaitGroup // RoundTrips, of which none begins once closed is set

	mu        sync.Mutex // guards what follows
	closed    bool
	discarded bool
	open      map[*liveBody]struct{} // answers that are being recorded
	calls     map[*context.CancelFunc]struct{}
	failed    error  // the first thing that keeps the recording from being kept
	unset     string // a variable that Secret was asked for and that is not set
	recorded  int
	answered  int
	unmatched []*UnmatchedError
	asked     map[exchange.Key]bool               // of unmatched
	last      map[exchange.Key]*exchange.Recorded // given last, for Options.Repeat
	replayed  map[uint64]bool                     // arrivals that the tape answered, in ModeReplayWithNewEpisodes
}

// Open opens the tape at path: path.tape, with its blobs in path.tape.cas; the suffix may stand in path. The directory of a
// tape that is to be recorded is made. Errors: *MissingTapeError where a tape is to answer that is not there, ErrInUse for a
// tape that is open in this process, *tape.LoadError for one that cannot be read.
func Open(path string, opts *Options) (*Transport, error) { return open(path, opts, "") }

func open(path string, opts *Options, test string) (*Transport, error) {
	t := &Transport{
		opts: withDefaults(opts), path: tapePath(path), again: runCommand(test),
		open: make(map[*liveBody]struct{}), calls: make(map[*context.CancelFunc]struct{}),
		asked: make(map[exchange.Key]bool), last: make(map[exchange.Key]*exchange.Recorded),
		replayed: make(map[uint64]bool),
	}
	var err error
	if t.mode, err = decided(t.opts.Mode); err != nil {
		return nil, fmt.Errorf("httptape: %w", err)
	}
	if t.mode == ModePassthrough {
		return t, nil
	}
	if t.real, err = filepath.Abs(t.path); err != nil {
		return nil, fmt.Errorf("httptape: %w", err)
	}
	if err := use(t.real, t.path); err != nil {
		return nil, err
	}
	if err := t.start(); err != nil {
		release(t.real)
		return nil, err
	}
	return t, nil
}

// start opens what the mode needs.
func (t *Transport) start() error {
	var err error
	if t.classifier, err = newClassifier(&t.opts); err != nil {
		return fmt.Errorf("httptape: masks: %w", err)
	}
	for _, name := range t.opts.DropHeaders {
		t.drop = append(t.drop, http.CanonicalHeaderKey(name))
	}
	rules := 0
	if t.mode != ModeRecordOnly {
		if rules, err = t.load(); err != nil {
			return err
		}
	}
	t.secrets = newSecrets(&t.opts, rules)
	var rec *tape.Recorder
	if t.mode != ModeReplayOnly {
		if t.work, err = newWorkshop(t.secrets.Rules()); err != nil {
			return fmt.Errorf("httptape: %w", err)
		}
		rec = t.work.rec
	}
	tap := &exchange.TapOptions{Replay: t.book != nil, MaxBody: t.opts.MaxBody}
	t.tap = exchange.NewTap(rec, t.classifier, t.secrets.Scrubber, tap)
	return nil
}

// load reads the tape that answers. Where there is none and the mode allows it, the mode becomes ModeRecordOnly. Rules are
// those by which the secrets of the tape were found, 0 where there is none.
func (t *Transport) load() (rules int, err error) {
	records, rules, err := readTape(t.real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.mode == ModeReplayOnly:
		return 0, &MissingTapeError{Tape: t.path, Mode: t.opts.Mode, again: t.again}
	case errors.Is(err, fs.ErrNotExist):
		t.mode = ModeRecordOnly
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("httptape: %w; mend it, or record it again: %s", err, t.again)
	case t.mode == ModeRecordOnce:
		t.mode = ModeReplayOnly
	}
	if t.blobs, err = cas.OpenDir(t.real+tape.StoreSuffix, nil); err != nil {
		return 0, fmt.Errorf("httptape: %w", err)
	}
	for i, r := range records {
		r.Seq = uint64(i)
	}
	t.book, err = exchange.NewBook(each(records), t.classifier, t.blobs)
	return rules, err
}

// Mode says what t does: ModeRecordOnly, ModeReplayOnly, ModeReplayWithNewEpisodes or ModePassthrough. ModeRecordOnce has
// been decided.
func (t *Transport) Mode() Mode { return t.mode }

// Recording reports whether requests may be sent and recorded.
func (t *Transport) Recording() bool {
	return t.mode == ModeRecordOnly || t.mode == ModeReplayWithNewEpisodes
}

// Client returns a client that uses t.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// CloseIdleConnections closes those of Options.Base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.opts.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. Errors: *UnmatchedError for a request that the tape does not answer,
// *RecordedError for one whose upstream gave an error while recording, *DamagedError for an answer that cannot be given; what
// Options.Base gives while recording.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.mode == ModePassthrough || t.opts.Passthrough != nil && t.opts.Passthrough(req) {
		return t.opts.Base.RoundTrip(req)
	}
	body, err := t.readBody(req)
	if err != nil {
		return nil, err
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.inFlight.Done()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if req.Header.Get("Upgrade") != "" {
		return nil, fmt.Errorf("%w: %s %s asks for %s; Options.Passthrough sends it on", ErrUpgrade, req.Method, t.shownURL(req), req.Header.Get("Upgrade"))
	}
	return t.exchange(req, body)
}

// exchange answers a request, or sends it on.
func (t *Transport) exchange(req *http.Request, body []byte) (*http.Response, error) {
	o, err := t.tap.Begin(t.asks(req, body))
	if err != nil {
		err = fmt.Errorf("httptape: request cannot be recorded: %w", err)
		t.fail(err)
		return nil, err
	}
	if t.book == nil {
		return t.live(req, body, o)
	}
	if rec := t.take(o); rec != nil {
		return t.answer(req, o, rec)
	}
	if t.mode == ModeReplayWithNewEpisodes {
		return t.live(req, body, o)
	}
	return nil, t.refuse(o)
}

// take finds the recorded exchange that answers a request; nil for none.
func (t *Transport) take(o *exchange.Open) *exchange.Recorded {
	key := o.Identity().Key
	rec, ok := o.Take(t.book)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok && t.opts.Repeat {
		rec = t.last[key]
	}
	if rec == nil {
		return nil
	}
	t.last[key] = rec
	t.answered++
	if t.work != nil {
		t.replayed[o.Arrival()] = true
	}
	return rec
}

// refuse is the error for a request that is not on the tape.
func (t *Transport) refuse(o *exchange.Open) error {
	id, r := o.Identity(), o.Request()
	rec, why := t.book.Nearest(id, r)
	o.Refuse(why)
	if err := o.End(""); err != nil {
		return err
	}
	e := &UnmatchedError{Tape: t.path, Method: r.Method, URL: r.URL, Nearest: rec, Why: why, again: t.again, asked: id}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked[id.Key] { // a client that tries again is told again
		t.asked[id.Key] = true
		t.unmatched = append(t.unmatched, e)
	}
	t.opts.Log.Warn("request is not on the tape", "method", r.Method, "url", r.URL, "why", why)
	return e
}

// enter takes part until inFlight.Done; ErrClosed after Close.
func (t *Transport) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("%w: %s", ErrClosed, t.path)
	}
	t.inFlight.Add(1)
	return nil
}

// fail notes what keeps the recording from being kept; the first counts.
func (t *Transport) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil && err != nil {
		t.failed = err
		t.opts.Log.Error("recording cannot be kept", "tape", t.path, "error", err)
	}
}

// Discard makes Close keep nothing of what was recorded: the tape stays as it is.
func (t *Transport) Discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.discarded = true
}

// Close ends the exchanges that are under way, and puts what was recorded in the place of the tape, whole or not at all.
// Errors: what kept the recording from being kept; a *DivergenceError where requests were not on the tape, or recorded exchanges
// were not asked for, unless the options allow it. A second Close returns the same.
func (t *Transport) Close() error {
	t.ending.Do(func() { t.endErr = t.end() })
	return t.endErr
}

func (t *Transport) end() error {
	if t.mode == ModePassthrough {
		return nil
	}
	defer release(t.real)
	t.endExchanges()
	var err error
	if t.work != nil {
		err = errors.Join(t.keep(), t.work.remove())
	}
	r := t.Report()
	if t.opts.AllowUnasked {
		r.Unasked = nil
	}
	if t.opts.AllowUnmatched {
		r.Unmatched = nil
	}
	if len(r.Unasked)+len(r.Unmatched)+len(r.Damaged) > 0 {
		err = errors.Join(err, &DivergenceError{Report: r})
	}
	return err
}

// endExchanges ends what is under way: what a caller has not read to its end was cut.
func (t *Transport) endExchanges() {
	t.mu.Lock()
	t.closed = true
	for cancel := range t.calls {
		(*cancel)()
	}
	t.mu.Unlock()
	t.inFlight.Wait() // none adds an answer any more
	t.mu.Lock()
	open := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	for _, b := range open {
		b.abandon()
	}
}
