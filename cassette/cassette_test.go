package cassette_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// record writes a small cassette of everything there is.
func record(t testing.TB, o *cassette.CreateOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	r, err := cassette.Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		r.Output([]byte("hello\r\n")), r.Input([]byte("x\r"), ""), r.Resize(cassette.Size{Rows: 10, Cols: 40}),
		r.ServiceEvent([]byte(`{"a": 1}`)), r.Output([]byte("wörld\r\n")), r.Signal("SIGINT"), r.Output([]byte("end")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Finish(&cassette.Final{Exit: &cassette.Exit{Exited: true}, DurationMS: 5}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRoundTrip(t *testing.T) {
	var g uint64
	dir := record(t, &cassette.CreateOptions{ResolutionMS: 1, FrameEvery: -1, G: func() uint64 { g++; return g }})
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := r.RawOutput()
	if err != nil || !bytes.Equal(raw, []byte("hello\r\nwörld\r\nend")) {
		t.Fatalf("%q, %v", raw, err)
	}
	var seq uint64
	for e, err := range r.Events(nil) {
		if err != nil {
			t.Fatal(err)
		}
		seq++
		if e.Seq != seq || e.G != seq {
			t.Fatalf("%+v", e)
		}
	}
	if seq != 9 {
		t.Fatalf("%d events", seq)
	}
	n := 0
	for f, err := range r.Derive(nil) {
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Text) != f.Size.Rows {
			t.Fatalf("%+v", f)
		}
		n++
	}
	if n != 3 {
		t.Fatalf("%d frames", n)
	}
	f, err := r.LastFrame()
	if err != nil || f.Text[0] != "hello" || f.RawEnd != 18 {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err = r.FrameAt(time.Hour); err != nil || f == nil {
		t.Fatalf("%v, %v", f, err)
	}
}
