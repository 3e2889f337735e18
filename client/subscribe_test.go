package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// follow reads a subscription to its end, calling at for each record before the next; it fails on a gap or a duplicate.
func follow(t *testing.T, c *client.Client, run string, at func(client.Record)) (records int) {
	t.Helper()
	for record, err := range c.Subscribe(soon(t), run, 0) {
		check(t, err)
		records++
		want := turnRecord(records - 2)
		switch record.Kind {
		case "started":
			want = `{"record":"started"}`
		case "ended":
			want = endedRecord
		}
		if record.Cursor != records || string(record.JSON) != want {
			t.Fatalf("record %d: got %+v %s, want %s", records, record, record.JSON, want)
		}
		at(record)
	}
	return records
}

func TestSubscribe(t *testing.T) {
	const turns = 3000 // more than a subscription keeps waiting
	for _, c := range []struct {
		name string
		at   func(f *fake, n int) // before turn n is recorded
	}{
		{"as they come", func(*fake, int) {}},
		{"lost by the daemon, and said", func(f *fake, n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.drop["r"] = n%100 > 50
			if n%100 == 99 {
				for peer := range f.conns {
					_ = peer.Notify(rpcapi.RunsTraceLost, rpcapi.RunsTraceLostParams{RunID: "r"})
				}
			}
		}},
		{"lost by the daemon", func(f *fake, n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.drop["r"] = n%7 == 3
		}},
		{"connections lost", func(f *fake, n int) {
			if n%1000 == 500 {
				f.cut()
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			cl := dial(t, f, nil)
			f.add("r", `{"record":"started"}`)
			begun := make(chan struct{})
			go func() {
				<-begun
				for n := range turns {
					c.at(f, n)
					f.add("r", turnRecord(n))
				}
				f.mu.Lock()
				f.drop["r"] = false
				f.mu.Unlock()
				f.add("r", endedRecord)
			}()
			got := follow(t, cl, "r", func(r client.Record) {
				if r.Cursor == 1 {
					close(begun)
				}
			})
			if got != turns+2 {
				t.Errorf("got %d records, want %d", got, turns+2)
			}
		})
	}
}

// What a slow reader misses is read again; the daemon is not held up by it.
func TestSubscribeSlowly(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	f.add("r", `{"record":"started"}`, turnRecord(0))
	read := func(client.Record) {}
	got := follow(t, c, "r", func(r client.Record) {
		read(r)
		if r.Cursor == 2 { // while the reader does nothing, more comes than is kept
			for n := range 1900 {
				f.add("r", turnRecord(n+1))
				if n%100 == 0 {
					ping(t, c)
				}
			}
			f.add("r", endedRecord)
			ping(t, c)
		}
	})
	if got != 1903 {
		t.Errorf("got %d records", got)
	}
}

// ping returns when what the daemon sent before has been read.
func ping(t *testing.T, c *client.Client) {
	t.Helper()
	check(t, c.State("").Set(soon(t), "k", 1))
}

// What was lost is read again as soon as that is known, and not when the run ends.
func TestSubscribeClosesGapsAtOnce(t *testing.T) {
	drop := func(f *fake, on bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop["r"] = on
	}
	for _, test := range []struct {
		name string
		lose func(f *fake, c *client.Client) // adds turns from 1 on; the reader is at work on turn 0
		last int                             // the turn that must come with no more said
	}{
		{"a later turn comes", func(f *fake, _ *client.Client) {
			drop(f, true)
			f.add("r", turnRecord(1), turnRecord(2))
			drop(f, false)
			f.add("r", turnRecord(3))
		}, 3},
		{"the daemon says so", func(f *fake, _ *client.Client) {
			drop(f, true)
			f.add("r", turnRecord(1))
			_ = f.peer().Notify(rpcapi.RunsTraceLost, rpcapi.RunsTraceLostParams{RunID: "r"})
		}, 1},
		{"more comes than is kept", func(f *fake, c *client.Client) {
			for n := range 1900 {
				f.add("r", turnRecord(n+1))
				if n%100 == 99 {
					ping(t, c)
				}
			}
		}, 1900},
		{"somebody else subscribes", func(f *fake, c *client.Client) {
			drop(f, true)
			f.add("r", turnRecord(1))
			drop(f, false)
			for _, err := range c.Subscribe(soon(t), "r", 0) {
				check(t, err)
				break
			}
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			caughtUp := new(sync.Once)
			f.answer = func(_ context.Context, r *jsonrpc.Request) (result any, handled bool, err error) {
				if r.Method == rpcapi.RunsGetTrace && strings.Contains(string(r.Params), `"cursor":1`) {
					caughtUp.Do(func() { // from here on there are events
						result, handled = rpcapi.RunsGetTraceResult{}, true
						f.add("r", turnRecord(0))
					})
				}
				return result, handled, nil
			}
			c := dial(t, f, nil)
			f.add("r", `{"record":"started"}`)
			for record, err := range c.Subscribe(soon(t), "r", 0) {
				check(t, err)
				switch record.Cursor {
				case 2:
					test.lose(f, c)
				case test.last + 2:
					return
				}
			}
		})
	}
}

func TestSubscribeTwice(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	f.add("r", `{"record":"started"}`)
	counts := make(chan int)
	for range 4 {
		go func() { counts <- follow(t, c, "r", func(client.Record) {}) }()
	}
	for n := range 200 {
		f.add("r", turnRecord(n))
	}
	for record, err := range c.Subscribe(soon(t), "r", 0) { // its end must not be that of the others
		check(t, err)
		if record.Cursor == 3 {
			break
		}
	}
	f.add("r", turnRecord(200), endedRecord)
	for range 4 {
		if n := <-counts; n != 203 {
			t.Errorf("got %d records", n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, runs := range f.subs {
		if len(runs) > 0 {
			t.Errorf("still subscribed: %v", runs)
		}
	}
}

func TestSubscribeEnds(t *testing.T) {
	f := newFake(t)
	c := dial(t, f, nil)
	last := func(ctx context.Context, run string, cursor int) (n int, err error) {
		for _, err = range c.Subscribe(ctx, run, cursor) {
			n++
		}
		return n, err
	}
	_, err := last(soon(t), "none", 0)
	is(t, err, client.ErrNotFound)
	for _, err = range c.Records(soon(t), "none", 0) {
		is(t, err, client.ErrNotFound)
	}

	f.add("r", `{"record":"started"}`, turnRecord(0), turnRecord(1))
	ctx, cancel := context.WithTimeout(soon(t), 50*time.Millisecond)
	defer cancel()
	n, err := last(ctx, "r", 2)
	is(t, err, context.DeadlineExceeded)
	if n != 2 { // the third record, and the error
		t.Errorf("got %d pairs", n)
	}

	go c.Close()
	_, err = last(soon(t), "r", 0)
	is(t, err, client.ErrClosed)
}

func TestRecordsInPages(t *testing.T) {
	f := newFake(t)
	f.answer = func(_ context.Context, r *jsonrpc.Request) (any, bool, error) {
		if r.Method != rpcapi.RunsGetTrace {
			return nil, false, nil
		}
		var p rpcapi.RunsGetTraceParams
		decode(r, &p)
		res := fmt.Sprintf(`{"records":[%s]}`, turnRecord(p.Cursor))
		if p.Cursor == 5 {
			res = `{"records":[]}`
		}
		return rawJSON(res), true, nil
	}
	c := dial(t, f, nil)
	n := 0
	for record, err := range c.Records(soon(t), "r", 2) {
		check(t, err)
		n++
		if record.Cursor != 2+n {
			t.Errorf("got cursor %d", record.Cursor)
		}
	}
	if n != 3 {
		t.Errorf("got %d records", n)
	}
}
