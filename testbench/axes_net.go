package testbench

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openNet says what HTTP requests reach.
func (b *Bench) openNet() error {
	if !b.hasNet() {
		b.http = &lateTransport{b: b}
		return nil
	}
	next, tr, err := b.newNet()
	if err != nil {
		return err
	}
	b.http = next
	b.late = append(b.late, tr.Close) // which records the answers that are still open
	if b.from == nil {
		b.unused = append(b.unused, func() (out []string) {
			for _, rec := range tr.Unasked() {
				out = append(out, fmt.Sprintf("%s: record %d: %s %s", b.conf.Net.Tape, rec.Seq, rec.Exchange.Method, rec.Exchange.URL))
			}
			return out
		})
	}
	return nil
}

// hasNet reports whether something may answer requests as they are: what a masker of their volatile parts costs is half of a run that
// makes none.
func (b *Bench) hasNet() bool {
	if b.from == nil {
		c := &b.conf.Net
		return c.Tape != "" || c.Allow != nil || c.Transport != nil
	}
	return slices.ContainsFunc(b.from.records, func(rec *tape.Record) bool {
		x := tape.ExchangeOf(rec.Kind)
		return x != nil && x.URL != ""
	})
}

// newNet makes what answers requests.
func (b *Bench) newNet() (http.RoundTripper, *roundtrip.Transport, error) {
	masker, err := bareMasker()
	if err != nil {
		return nil, nil, err
	}
	c := &b.conf.Net
	classifier := llm.NewClassifier(masker)
	o := &roundtrip.Options{
		Classifier: classifier, Scrubber: b.secrets.scrubber, Allow: c.Allow, Next: c.Transport,
		InOrder: b.from != nil && b.from.foreign, Timed: b.from != nil, Wait: b.wait, Outside: b.clock.Outside,
		NowMS: func() int64 { _, ms := b.clock.Stamp(); return ms },
	}
	switch {
	case b.from != nil:
		o.Tape = &roundtrip.Tape{Name: b.from.path, Records: b.from.records, Store: b.from.store}
	case c.Tape != "":
		if o.Tape, err = roundtrip.OpenTape(c.Tape); err != nil {
			return nil, nil, &ConfigError{"Net.Tape", err}
		}
	}
	tr, err := roundtrip.New(o)
	if err != nil {
		return nil, nil, &ConfigError{"Net", err}
	}
	tr.Record(b.Recorder())
	return b.speaking(&watchedTransport{b: b, next: tr}, classifier), tr, nil
}

// lateTransport is the network of a run that has none, made by the first request: which is refused, or is a call of a model that the
// run's model answers.
type lateTransport struct {
	b    *Bench
	once sync.Once
	next http.RoundTripper
	err  error
}

// RoundTrip implements http.RoundTripper.
func (t *lateTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(func() { t.next, _, t.err = t.b.newNet() })
	if t.err != nil {
		return refused(req, t.err)
	}
	return t.next.RoundTrip(req)
}

// refused closes the body of a request that is not sent, as every RoundTripper does.
func refused(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // nobody reads it
	}
	return nil, err
}

// watchedTransport tells the watch of requests that nothing answers.
type watchedTransport struct {
	b    *Bench
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *watchedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.b.watch.gate(); err != nil {
		return refused(req, err)
	}
	res, err := w.next.RoundTrip(req)
	var missed *roundtrip.UnmatchedError
	asked := func() tape.Kind {
		if errors.As(err, &missed) {
			return missed.Asked
		}
		return nil
	}
	return res, w.b.watch.see(err, asked)
}
