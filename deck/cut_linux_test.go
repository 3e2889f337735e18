package deck_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["download"] = playDownload }

// playDownload begins to download its first argument, and ends at some moment; with a second argument when it has all of it.
func playDownload(args []string) int {
	begun, all := make(chan error, 1), make(chan error, 1)
	go func() {
		res, err := http.Get(args[0])
		if begun <- err; err != nil {
			return
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		all <- err
	}()
	if err := <-begun; err != nil {
		return fail(err)
	}
	if len(args) == 1 {
		time.Sleep(rand.N(20 * time.Millisecond))
	} else if err := <-all; err != nil {
		return fail(err)
	}
	fmt.Println("enough")
	return 0
}

// TestDownloadCutByTheEnd: how much a program had got that ended while it downloaded does not gate, whether it had got all of it in the
// one run or the other. What it asked for does.
func TestDownloadCutByTheEnd(t *testing.T) {
	b := newBench(t)
	srv := b.upstream("files.example.com", func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 64<<10)
		for i := 0; (i < 100 || r.URL.Path == "/endless") && r.Context().Err() == nil; i++ {
			w.Write(part)
		}
	})
	const files = "http://files.example.com"
	cut, out := b.record("download", files+"/endless")
	whole, outWhole := b.record("download", files+"/file", "all")
	if out != "enough\n" || outWhole != "enough\n" {
		t.Fatalf("the programs said %q and %q", out, outWhole)
	}
	srv.Close()
	for range often(20) {
		v, _ := b.replay(cut.Recording, nil)
		b.noted(v, "1 exchange cut by the end of the run")
		argv, _ := b.self("download", files+"/file")
		v, _ = b.replay(whole.Recording, &deck.ReplayOptions{Argv: argv})
		for _, d := range v.Divergences {
			if !strings.HasPrefix(string(d.Category), "process_") { // its arguments are others
				t.Errorf("%+v", d)
			}
		}
	}
	argv, _ := b.self("download", files+"/other", "all")
	if v, _ := b.replay(whole.Recording, &deck.ReplayOptions{Argv: argv}); len(v.Refused) != 1 || len(v.Unasked) != 1 {
		t.Errorf("another download: refused %+v, unasked %+v", v.Refused, v.Unasked)
	}
}
