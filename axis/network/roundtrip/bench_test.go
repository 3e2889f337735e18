package roundtrip

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestNoProxy has the proxy of the environment left alone. net/http reads that once a process, so no request can show it.
func TestNoProxy(t *testing.T) {
	tr, err := New(&Options{Classifier: llm.NewClassifier(nil), Allow: []string{"h.example"}})
	if err != nil || tr.own == nil || tr.own.Proxy != nil {
		t.Errorf("%+v, %v", tr, err)
	}
}

// TestOpenForgotten has what was read to its end be forgotten.
func TestOpenForgotten(t *testing.T) {
	tr, err := New(&Options{Classifier: llm.NewClassifier(nil), Next: nextFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok")), ContentLength: 2}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest(http.MethodGet, "http://h.example/x", nil)
	res, err := tr.RoundTrip(req)
	if err != nil || len(tr.open) != 1 {
		t.Fatalf("%d open, %v", len(tr.open), err)
	}
	if _, err := io.ReadAll(res.Body); err != nil || len(tr.open) != 0 {
		t.Errorf("%d open, %v", len(tr.open), err)
	}
}

// BenchmarkHookOff is what the hook of a chunk costs where nothing is recorded.
func BenchmarkHookOff(b *testing.B) {
	t, err := New(&Options{Classifier: llm.NewClassifier(nil)})
	if err != nil {
		b.Fatal(err)
	}
	o, err := t.tap.Begin(&exchange.Request{Method: "GET", URL: "http://h/", Header: http.Header{}})
	if err != nil {
		b.Fatal(err)
	}
	p := []byte("data: x\n\n")
	b.ReportAllocs()
	for b.Loop() {
		if err := o.Chunk(p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew is what a Transport costs that nobody asks.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(&Options{Classifier: llm.NewClassifier(nil)}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRoundTrip(b *testing.B, rec *tape.Recorder) {
	next := nextFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("ok")), ContentLength: 2}, nil
	})
	t, err := New(&Options{Classifier: llm.NewClassifier(nil), Next: next})
	if err != nil {
		b.Fatal(err)
	}
	t.Record(rec)
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest(http.MethodGet, "http://h.example/x", nil)
		res, err := t.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

type nextFunc func(*http.Request) (*http.Response, error)

func (f nextFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func BenchmarkRoundTripOff(b *testing.B) { benchmarkRoundTrip(b, nil) }

func BenchmarkRoundTripOn(b *testing.B) {
	w, err := tape.NewWriter(io.Discard, &tape.Header{Producer: "test"})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRoundTrip(b, tape.NewRecorder(w, nil))
}
