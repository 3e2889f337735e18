package network

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestPatience gives an answer that the program had cancelled to one that does so again after its own time, or never.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		name        string
		status      int
		endedMS     int64 // on the tape
		leaves      time.Duration
		after, held time.Duration // how long it waited; held where the program did not leave
	}{
		{"a timeout over a minute, nothing came", 0, 90_000, 90 * time.Second, 90 * time.Second, 0},
		{"a timeout over a minute, some came", 200, 90_000, 90 * time.Second, 90 * time.Second, 0},
		{"the time limit of a run of an hour", 200, 3_600_000, time.Hour, time.Hour, 0},
		{"a program that does not leave", 200, 90_000, 0, 0, 100 * time.Second},
		{"the same, nothing came", 0, 90_000, 0, 0, 100 * time.Second},
		{"a tape without times", 200, 0, 0, 0, 10 * time.Second},
		{"times before the beginning", 200, -1, 0, 0, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.leaves > 0 {
					time.AfterFunc(tt.leaves, cancel)
				}
				begun := time.Now()
				err := endOf(ctx, t, tt.status, tt.endedMS)
				if took := time.Since(begun); took != tt.after+tt.held {
					t.Errorf("waited %v, want %v", took, tt.after+tt.held)
				}
				var cut *exchange.CutError
				switch {
				case tt.held == 0 && !errors.Is(err, context.Canceled):
					t.Errorf("the program left, and the answer ended with %v", err)
				case tt.held > 0 && (!errors.As(err, &cut) || cut.Text != tape.HeldOn):
					t.Errorf("the program stayed, and the answer ended with %v", err)
				}
			})
		})
	}
}

// endOf is how the answer ends that a program cancelled when the recording had run for so long.
func endOf(ctx context.Context, t *testing.T, status int, endedMS int64) error {
	t.Helper()
	ex := tape.Exchange{Method: "GET", URL: "http://a.example/", Status: status, Error: tape.Cancelled, Arrival: 1}
	if status > 0 {
		ex.Response = &tape.Payload{Hash: cas.Sum(nil), Inline: true}
	}
	tap := exchange.NewTap(nil, plainHTTP{}, scrub.New(scrub.Key{}, nil), &exchange.TapOptions{Replay: true})
	o, err := tap.Begin(&exchange.Request{Method: ex.Method, URL: ex.URL})
	if err != nil {
		t.Fatal(err)
	}
	ex.RequestDigest = o.Identity().Key.Request
	book, err := exchange.NewBook(func(yield func(*tape.Record, error) bool) {
		yield(&tape.Record{MonotonicMS: endedMS, Kind: &tape.HTTPExchange{Exchange: ex}}, nil)
	}, plainHTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := (&taped{Config: &Config{Book: book}}).replayed(httptest.NewRequestWithContext(ctx, "POST", "/", nil), o.Request(), "a.example", o)
	if a.body == nil {
		return a.err
	}
	defer a.body.Close()
	_, err = a.body.Next(ctx)
	return err
}
