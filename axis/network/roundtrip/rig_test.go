package roundtrip_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A rig is a Transport and the tape that it records.
type rig struct {
	*roundtrip.Transport
	t      *testing.T
	buf    bytes.Buffer
	store  cas.Store
	rec    *tape.Recorder
	client *http.Client
}

func newRig(t *testing.T, o *roundtrip.Options) *rig {
	t.Helper()
	if o.Classifier == nil {
		o.Classifier = llm.NewClassifier(nil)
	}
	tr, err := roundtrip.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Transport: tr, t: t, store: cas.NewMemory(), client: &http.Client{Transport: tr}}
	started := int64(0)
	w, err := tape.NewWriter(&r.buf, &tape.Header{Producer: "test", StartedAtUnixMS: &started})
	if err != nil {
		t.Fatal(err)
	}
	r.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: r.store, Now: func() (int64, int64) { return 0, 0 }})
	tr.Record(r.rec)
	t.Cleanup(func() { _ = tr.Close() })
	return r
}

// tape is what was recorded so far.
func (r *rig) tape() *roundtrip.Tape {
	r.t.Helper()
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.rec.Flush(); err != nil {
		r.t.Fatal(err)
	}
	f, err := tape.NewReader(bytes.NewReader(r.buf.Bytes()), "run.tape")
	if err != nil {
		r.t.Fatal(err)
	}
	out := &roundtrip.Tape{Name: "run.tape", Store: r.store}
	for rec, err := range f.Records() {
		if err != nil {
			r.t.Fatal(err)
		}
		out.Records = append(out.Records, rec)
	}
	return out
}

// exchanges are those of the tape.
func (r *rig) exchanges() []*tape.Exchange {
	var out []*tape.Exchange
	for _, rec := range r.tape().Records {
		out = append(out, tape.ExchangeOf(rec.Kind))
	}
	return out
}

// get asks for a URL, and returns the body of the answer.
func (r *rig) get(url string) string {
	r.t.Helper()
	res, err := r.client.Get(url)
	return r.read(res, err)
}

func (r *rig) post(url, body string) string {
	r.t.Helper()
	res, err := r.client.Post(url, "application/json", strings.NewReader(body))
	return r.read(res, err)
}

func (r *rig) read(res *http.Response, err error) string {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// serve runs a server whose answers have no date.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// hostOf is the host and port of a server.
func hostOf(srv *httptest.Server) string { return strings.TrimPrefix(srv.URL, "http://") }

// through is a RoundTripper of a function, which counts what it is asked.
type through struct {
	calls int
	do    func(*http.Request) (*http.Response, error)
}

func (f *through) RoundTrip(req *http.Request) (*http.Response, error) {
	f.calls++
	return f.do(req)
}

// answerOf is a whole answer.
func answerOf(status int, header http.Header, body io.ReadCloser) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		if header == nil {
			header = make(http.Header)
		}
		return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: body, ContentLength: -1}, nil
	}
}

// pieces is a body that gives one piece a Read.
type pieces struct {
	left []string
	err  error // behind them; nil is io.EOF
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

func (*pieces) Close() error { return nil }

// waits is a body whose Read ends with its context alone.
type waits struct {
	first string
	ctx   context.Context
}

func (w *waits) Read(b []byte) (int, error) {
	if n := copy(b, w.first); n > 0 {
		w.first = ""
		return n, nil
	}
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

func (*waits) Close() error { return nil }
