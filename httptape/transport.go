package httptape

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
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
	secrets    *scrub.Scrubber
	drop       []string // headers that do not reach the tape, canonical
	trip       *roundtrip.Transport

	work *workshop // where a recording is made; nil in ModeReplayOnly

	ending   sync.Once
	endErr   error
	inFlight sync.WaitGroup // RoundTrips, of which none begins once closed is set

	mu        sync.Mutex // guards what follows
	closed    bool
	discarded bool
	failed    error  // the first thing that keeps the recording from being kept
	unset     string // a variable that Secret was asked for and that is not set
	recorded  int
	answered  int
	unmatched []*UnmatchedError
	asked     map[exchange.Key]bool // of unmatched
	replayed  map[uint64]bool       // arrivals that the tape answered, in ModeReplayWithNewEpisodes
}

// Open opens the tape at path: path.tape, with its blobs in path.tape.cas; the suffix may stand in path. The directory of a
// tape that is to be recorded is made. Errors: *MissingTapeError where a tape is to answer that is not there, ErrInUse for a
// tape that is open in this process, *tape.LoadError for one that cannot be read.
func Open(path string, opts *Options) (*Transport, error) { return open(path, opts, "") }

func open(path string, opts *Options, test string) (*Transport, error) {
	t := &Transport{
		opts: withDefaults(opts), path: tapePath(path), again: runCommand(test),
		asked: make(map[exchange.Key]bool), replayed: make(map[uint64]bool),
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
		inUse.Delete(t.real)
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
	var from *roundtrip.Tape
	if t.mode != ModeRecordOnly {
		if from, err = t.load(); err != nil {
			return err
		}
	}
	rules := 0
	if from != nil {
		rules = from.Rules
	}
	t.secrets = newSecrets(&t.opts, rules)
	o := &roundtrip.Options{
		Classifier: t.classifier, Scrubber: t.secrets, Tape: from, Machine: true, Speed: t.opts.Speed, MaxBody: t.opts.MaxBody,
		Change: t.change, Repeat: t.opts.Repeat, Answered: t.answers, Failed: t.fail,
		Kept: func(h http.Header) http.Header { return withoutNames(h, t.drop) },
	}
	if t.mode != ModeReplayOnly {
		o.Next = upstream{t}
	}
	if t.trip, err = roundtrip.New(o); err != nil {
		return err
	}
	if t.mode == ModeReplayOnly {
		return nil
	}
	if t.work, err = newWorkshop(t.secrets.Rules()); err != nil {
		return fmt.Errorf("httptape: %w", err)
	}
	t.trip.Record(t.work.rec)
	return nil
}

// load reads the tape that answers. Where there is none and the mode allows it, the mode becomes ModeRecordOnly, and it is nil.
func (t *Transport) load() (*roundtrip.Tape, error) {
	records, rules, err := readTape(t.real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && t.mode == ModeReplayOnly:
		return nil, &MissingTapeError{Tape: t.path, Mode: t.opts.Mode, again: t.again}
	case errors.Is(err, fs.ErrNotExist):
		t.mode = ModeRecordOnly
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("httptape: %w; mend it, or record it again: %s", err, t.again)
	case t.mode == ModeRecordOnce:
		t.mode = ModeReplayOnly
	}
	blobs, err := cas.OpenDir(t.real+tape.StoreSuffix, nil)
	if err != nil {
		return nil, fmt.Errorf("httptape: %w", err)
	}
	for i, r := range records {
		r.Seq = uint64(i)
	}
	return &roundtrip.Tape{Name: t.path, Records: records, Store: blobs, Rules: rules}, nil
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
	if err := t.enter(); err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	defer t.inFlight.Done()
	res, err := t.trip.RoundTrip(req)
	var unmatched *roundtrip.UnmatchedError
	switch {
	case errors.As(err, &unmatched):
		return nil, t.refused(unmatched)
	case errors.Is(err, exchange.ErrTooLarge):
		return nil, fmt.Errorf("httptape: %w; set Options.MaxBody", err)
	case errors.Is(err, ErrUpgrade):
		return nil, fmt.Errorf("httptape: %w; Options.Passthrough sends it on", err)
	}
	return res, err
}

// change makes of a request what is matched and kept.
func (t *Transport) change(r *exchange.Request) {
	r.Header = withoutNames(r.Header, t.drop)
	if t.opts.Rewrite != nil {
		r.Header, r.Body = r.Header.Clone(), bytes.Clone(r.Body)
		t.opts.Rewrite(r)
	}
}

// answers notes that the tape answers a request.
func (t *Transport) answers(arrival uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered++
	if t.work != nil {
		t.replayed[arrival] = true
	}
}

// refused is the error for a request that is not on the tape.
func (t *Transport) refused(u *roundtrip.UnmatchedError) error {
	e := &UnmatchedError{u, t.again}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked[u.Identity.Key] { // a client that tries again is told again
		t.asked[u.Identity.Key] = true
		t.unmatched = append(t.unmatched, e)
	}
	t.opts.Log.Warn("request is not on the tape", "method", u.Method, "url", u.URL, "why", u.Why)
	return e
}

// An upstream sends what is recorded to Options.Base.
type upstream struct{ t *Transport }

// RoundTrip implements http.RoundTripper.
func (u upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := u.t.sends(); err != nil {
		return nil, err
	}
	return u.t.opts.Base.RoundTrip(req)
}

// sends counts a request that is about to be sent. The error is why it must not be.
func (t *Transport) sends() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded++
	if t.unset == "" || t.failed != nil {
		return nil
	}
	t.failed = fmt.Errorf("the variable %s is not set: recording needs its value", t.unset)
	return fmt.Errorf("httptape: %w", t.failed)
}

// shownURL is the URL of a request as logs tell it.
func (t *Transport) shownURL(req *http.Request) string {
	if t.secrets == nil {
		return req.URL.Redacted()
	}
	t.secrets.LearnHeader(req.Header)
	return t.secrets.URL(exchange.RequestOf(req, nil).URL)
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
	defer inUse.Delete(t.real)
	t.endExchanges()
	var err error
	if t.work != nil {
		err = t.keep()
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
	t.mu.Unlock()
	t.trip.Abort()
	t.inFlight.Wait()  // none begins an answer any more
	_ = t.trip.Close() // the error is one of closing what nobody reads
}

// TB is what New needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Name() string
	Failed() bool
	Skipped() bool
	Cleanup(f func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New opens the tape at path for a test, and closes it when the test and its subtests have ended. The test fails at once
// where the tape cannot be opened (see Open), and at its end with what Close returns: requests that are not on the tape, and
// recorded exchanges that nobody asked for.
//
// What a test recorded that failed or was skipped is not kept. Of such a test, what nobody asked for is no news.
func New(t TB, path string, opts *Options) *Transport {
	t.Helper()
	tr, err := open(path, opts, t.Name())
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() { tr.endTest(t) })
	return tr
}

// endTest closes t at the end of a test.
func (t *Transport) endTest(tb TB) {
	tb.Helper()
	if tb.Failed() || tb.Skipped() {
		if t.Recording() && t.Report().Recorded > 0 {
			tb.Logf("httptape: the test failed or was skipped: what it recorded is not kept, %s", t.untouched())
		}
		t.Discard()
		t.opts.AllowUnasked = true
	}
	if err := t.Close(); err != nil {
		tb.Errorf("%v", err)
	}
}

// Handler returns a handler that passes every request on to t, as one to the server at the URL base, so that a program that
// takes a base URL and no transport can be recorded and answered:
//
//	srv := httptest.NewServer(tr.Handler("https://api.openai.com"))
//
// Answers are streamed as they come. A request that is not on the tape gets status exchange.RefusedStatus, which no SDK tries
// again, with the explanation in the error shape of its provider; an answer that was cut ends in a connection that is cut.
// Accept-Encoding is not passed on, so that a tape holds text. Where base is no URL every request gets status 500.
func (t *Transport) Handler(base string) http.Handler {
	to, err := url.Parse(base)
	if err == nil && (to.Scheme == "" || to.Host == "") {
		err = fmt.Errorf("%q is no absolute URL", base)
	}
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "httptape: base of the handler: "+err.Error(), http.StatusInternalServerError)
		})
	}
	onward := &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1, ErrorHandler: t.unanswered, ErrorLog: slog.NewLogLogger(t.opts.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came, whatever it is
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Alt-Svc") // would lead around the tape
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchange.SetHeader(w.Header(), nil)
		onward.ServeHTTP(w, r)
	})
}

// unanswered tells a client that its request is not on the tape, or cuts its connection, as that of the answer was.
func (t *Transport) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	unmatched, ok := errors.AsType[*UnmatchedError](err)
	if !ok {
		t.opts.Log.Debug("no answer", "url", t.shownURL(r), "error", err)
		panic(http.ErrAbortHandler) // net/http's way to cut the connection
	}
	refuse(w, unmatched)
}

// refuse tells a client that its request is not on the tape.
func refuse(w http.ResponseWriter, e *UnmatchedError) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(exchange.RefusedStatus)
	body := exchange.ErrorBody(e.Identity, exchange.RefusedStatus, exchange.NotOnTape, e.Error())
	_, _ = w.Write(body) // who asked and went away needs no answer
}

// Secret returns the value of an environment variable, and makes it a secret that never reaches the tape. Where the
// variable is not set it returns a dummy that reads the same, so a test whose requests hold a key in their URL or body needs
// none to replay; a request that would be sent and recorded then fails, and Close keeps nothing.
func (t *Transport) Secret(name string) string {
	value := os.Getenv(name)
	if value == "" {
		sum := sha256.Sum256([]byte(name))
		value = "dummy-" + hex.EncodeToString(sum[:16])
		t.mu.Lock()
		t.unset = name
		t.mu.Unlock()
	}
	if t.secrets != nil {
		t.secrets.AddSecret(name, value)
	}
	return value
}
