package exchange_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// lateValue is a secret that a first recorder does not know, and a second one does.
const lateValue = "lt4Xw2Lk9Vb4Nm6Tr8Yp"

// A traffic is one exchange as a program has it.
type traffic struct {
	request exchange.Request
	status  int
	header  http.Header
	chunks  []string
	cut     string
}

var packedText = zipped("a text with " + lateValue + " in it")

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

// lateTraffic holds lateValue wherever an exchange may.
var lateTraffic = map[string]traffic{
	"strings": {
		request: exchange.Request{Method: "GET", URL: "https://h/" + lateValue + "?q=" + lateValue, Header: http.Header{"X-Note": {"a " + lateValue, "b\xff" + lateValue}}},
		status:  200, header: http.Header{"X-Echo": {lateValue}}, chunks: []string{"nothing"},
	},
	"bodies": {
		request: exchange.Request{Method: "POST", URL: "https://h/", Body: []byte("note=" + lateValue)},
		status:  200, header: http.Header{"Content-Length": {"40"}}, chunks: []string{"one ", "two lt4Xw2Lk", "9Vb4Nm6Tr8Yp three", " four"},
	},
	"a model": {
		request: exchange.Request{Method: "POST", URL: "https://h/", Body: []byte(`{"model":"m","messages":["remember ` + lateValue + `","and this"]}`)},
		status:  200, chunks: []string{`{"usage":{"n":1},`, `"text":"` + lateValue + `"}`},
	},
	"packed": {
		request: exchange.Request{Method: "POST", URL: "https://h/", Header: http.Header{"Content-Encoding": {"gzip"}}, Body: []byte(packedText)},
		status:  200, header: http.Header{"Content-Encoding": {"gzip"}}, chunks: []string{packedText[:20], packedText[20:]},
	},
	"packed and cut": {
		request: exchange.Request{Method: "GET", URL: "https://h/"},
		status:  200, header: http.Header{"Content-Encoding": {"gzip"}}, chunks: []string{packedText[:len(packedText)-8]}, cut: "connection reset",
	},
	"base64": {
		request: exchange.Request{Method: "POST", URL: "https://h/", Body: []byte(base64.StdEncoding.EncodeToString([]byte("k" + lateValue + "!")))},
		status:  204,
	},
	"long": {
		request: exchange.Request{Method: "GET", URL: "https://h/"},
		status:  200, chunks: []string{strings.Repeat("x", 3<<20) + lateValue, strings.Repeat("y", 2<<20), lateValue},
	},
	"unanswered": {
		request: exchange.Request{Method: "GET", URL: "https://h/" + lateValue}, cut: "no such host: h",
	},
}

// record puts a traffic on a tape whose recorder has a scrubber.
func (x *traffic) record(t *testing.T, s *scrub.Scrubber, store cas.Store) *tape.Record {
	t.Helper()
	var b bytes.Buffer
	w, err := tape.NewWriter(&b, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	tap := exchange.NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), classifier{}, s, &exchange.TapOptions{TrueLength: true})
	o, err := tap.Begin(&x.request)
	if err != nil {
		t.Fatal(err)
	}
	if x.status != 0 {
		if err := o.Response(x.status, x.header); err != nil {
			t.Fatal(err)
		}
		for _, c := range x.chunks {
			if err := o.Chunk([]byte(c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := o.End(x.cut); err != nil {
		t.Fatal(err)
	}
	return oneRecord(t, &b)
}

func oneRecord(t *testing.T, b *bytes.Buffer) *tape.Record {
	t.Helper()
	r, err := tape.NewReader(b, "test")
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	t.Fatal("there is no record")
	return nil
}

// TestAgain: an exchange that was recorded before a secret was known is brought into the very record that it would be, and
// is then left alone.
func TestAgain(t *testing.T) {
	for name, x := range lateTraffic {
		t.Run(name, func(t *testing.T) {
			store, early := cas.NewMemory(), newScrubber()
			early.AddSecret("x_api_key", lateValue)
			want := x.record(t, early, store)
			s := newScrubber()
			mark := s.Mark()
			got := x.record(t, s, store)
			stream := slices.Clone(tape.ExchangeOf(got.Kind).Stream)
			s.AddSecret("x_api_key", lateValue)
			late := s.Since(mark)
			if found, err := exchange.NewSearch(store, late).Holds(got); !found || err != nil {
				t.Fatalf("found: %t, %v", found, err)
			}
			if err := exchange.Again(got, store, classifier{}, late, &exchange.TapOptions{TrueLength: true}); err != nil {
				t.Fatal(err)
			}
			if found, err := exchange.NewSearch(store, late).Holds(got); found || err != nil {
				t.Errorf("it still holds the value: %v", err)
			}
			checkTimes(t, stream, tape.ExchangeOf(got.Kind).Stream)
			if diff := cmp.Diff(lineOf(want), lineOf(got)); diff != "" {
				t.Error(diff)
			}
			clean := lineOf(want)
			if found, err := exchange.NewSearch(store, late).Holds(want); found || err != nil || lineOf(want) != clean {
				t.Errorf("what was recorded with it holds it: %t, %v", found, err)
			}
		})
	}
}

// checkTimes: every chunk that is left came when one of the recorded ones did, in their order.
func checkTimes(t *testing.T, was, is []tape.Chunk) {
	t.Helper()
	for _, c := range is {
		i := slices.IndexFunc(was, func(w tape.Chunk) bool { return w.G == c.G && w.TMS == c.TMS })
		if i < 0 {
			t.Errorf("chunk %+v came at no recorded time of %+v", c, was)
			return
		}
		was = was[i+1:]
	}
}

// lineOf is a record as it stands on a tape, without what differs from run to run.
func lineOf(r *tape.Record) string {
	c := *r
	c.VirtualTimeMS, c.MonotonicMS, c.G = 0, 0, 0
	x := tape.ExchangeOf(c.Kind)
	stream := slices.Clone(x.Stream)
	defer func(was []tape.Chunk) { x.Stream = was }(x.Stream)
	for i := range stream {
		stream[i].TMS, stream[i].G = 0, 0
	}
	x.Stream = stream
	return string(tape.AppendRecord(nil, &c))
}

// TestAgainKeepsWhatItCannotTake: the digest of a request whose body was not kept, the place in time, and the lane of a host.
func TestAgainKeepsWhatItCannotTake(t *testing.T) {
	x := traffic{
		request: exchange.Request{Method: "POST", URL: "https://h/" + lateValue, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: []byte("no gzip")},
		status:  200, chunks: []string{"ok"},
	}
	store, s := cas.NewMemory(), newScrubber()
	mark := s.Mark()
	r := x.record(t, s, store)
	was := *tape.ExchangeOf(r.Kind)
	r.Seq, r.G, r.VirtualTimeMS = 7, 99, 1234
	s.AddSecret("x_api_key", lateValue)
	if err := exchange.Again(r, store, classifier{}, s.Since(mark), nil); err != nil {
		t.Fatal(err)
	}
	is := tape.ExchangeOf(r.Kind)
	if is.RequestDigest != was.RequestDigest || is.Lane != was.Lane || is.Arrival != was.Arrival || r.Seq != 7 || r.G != 99 || r.VirtualTimeMS != 1234 {
		t.Errorf("%+v became %+v at %d", was, is, r.G)
	}
	if lost := fmt.Sprint(*tape.Extras(r.Kind)); !strings.Contains(lost, "request_lost") || strings.Contains(is.URL, lateValue) {
		t.Errorf("%s %s", is.URL, lost)
	}
}
