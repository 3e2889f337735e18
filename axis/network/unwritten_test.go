package network

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A recorder that cannot write any more answers nothing: what it would answer would be on no tape.
func TestNothingIsAnsweredOffTheTape(t *testing.T) {
	for _, proto := range []string{"h1", "h2"} {
		asked := 0
		g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { asked++ }))
		g.tap.rec.Fail(errors.New("the disk is full"))
		res, err := g.client(proto).Get("https://api.example.com/")
		if err == nil {
			t.Errorf("%s: status %d", proto, res.StatusCode)
			res.Body.Close()
		}
		if asked > 0 {
			t.Errorf("%s: the upstream was asked", proto)
		}
	}
}

// A request that is under way when the recorder ends has no answer: an empty one would be an answer.
func TestNothingIsAnsweredOnceTheTapeHasEnded(t *testing.T) {
	for _, proto := range []string{"h1", "h2"} {
		g := newRig(t, upstreamOf(t, func(http.ResponseWriter, *http.Request) {}))
		g.tap.asked = func() { g.tap.rec.Fail(errors.New("the disk is full")) }
		res, err := g.client(proto).Get("https://api.example.com/")
		if err == nil {
			t.Errorf("%s: status %d", proto, res.StatusCode)
			res.Body.Close()
		}
	}
}

// An answer whose part cannot be written is cut: the program gets nothing of what is not in the part.
func TestAnAnswerThatCannotBeKeptIsCut(t *testing.T) {
	for _, proto := range []string{"h1", "h2"} {
		g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			http.NewResponseController(w).Flush()
			<-r.Context().Done() // it ends when it is cut
		}))
		if err := os.WriteFile(filepath.Join(g.tap.parts, "1"), nil, 0o600); err != nil { // the name of the first part is taken
			t.Fatal(err)
		}
		res, err := g.client(proto).Get("https://api.example.com/")
		if err == nil {
			var n int
			n, err = res.Body.Read(make([]byte, 1))
			res.Body.Close()
			if n > 0 {
				t.Errorf("%s: the program got a byte of it", proto)
			}
		}
		if err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: the answer was not cut: %v", proto, err)
		}
		if g.tap.rec.Err() == nil || g.tap.rec.Count() != 0 {
			t.Errorf("%s: %d records, %v", proto, g.tap.rec.Count(), g.tap.rec.Err())
		}
	}
}
