package httptape_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// saysAfter is an upstream that takes its time.
func saysAfter(d time.Duration, text string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(d)
		body := io.NopCloser(strings.NewReader(text))
		return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", Header: http.Header{}, Body: body, ContentLength: -1, Request: r}, nil
	}
}

// TestMergedTape: requests of two recordings were not under way together, whatever their times say, and a replay that asks one
// after the other waits for nothing.
func TestMergedTape(t *testing.T) {
	const url = "http://slow.example/"
	type session struct {
		mode    httptape.Mode
		before  time.Duration // the first request
		answers []roundTripper
	}
	quarter := saysAfter(250*time.Millisecond, "a")
	for name, sessions := range map[string][]session{
		"a new episode": {
			{httptape.ModeRecordOnly, 100 * time.Millisecond, []roundTripper{quarter}},
			{httptape.ModeReplayWithNewEpisodes, 100 * time.Millisecond, []roundTripper{nil, quarter}},
		},
		"a line that stays": {
			{httptape.ModeRecordOnly, 100 * time.Millisecond, []roundTripper{quarter, saysAfter(0, "b")}},
			{httptape.ModeRecordOnly, 10 * time.Millisecond, []roundTripper{saysAfter(time.Millisecond, "a"), saysAfter(250*time.Millisecond, "c")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test")
			synctest.Test(t, func(t *testing.T) {
				for _, s := range sessions {
					var answer roundTripper
					tr := open(t, path, &httptape.Options{Mode: s.mode, Base: roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r) })})
					time.Sleep(s.before)
					for _, answer = range s.answers {
						get(t, tr.Client(), url)
					}
					closed(t, tr)
				}
				tr, begun := open(t, path, nil), time.Now()
				for range 2 {
					get(t, tr.Client(), url)
				}
				if took := time.Since(begun); took != 0 {
					t.Errorf("the replay took %v", took)
				}
				closed(t, tr)
			})
		})
	}
}

// TestHedge: requests of one recording that were under way together are so on a replay.
func TestHedge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	run := func(t *testing.T) {
		tr := open(t, path, &httptape.Options{Base: saysAfter(250*time.Millisecond, "a")})
		time.Sleep(100 * time.Millisecond)
		first := make(chan time.Duration)
		begun := time.Now()
		go func() {
			get(t, tr.Client(), "http://slow.example/")
			first <- time.Since(begun)
		}()
		select {
		case took := <-first:
			t.Errorf("the first answer came after %v, and a hedge is not sent", took)
		case <-time.After(100 * time.Millisecond):
			get(t, tr.Client(), "http://slow.example/")
			<-first
		}
		closed(t, tr)
	}
	for range 2 {
		synctest.Test(t, run)
	}
}
