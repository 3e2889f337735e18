package network

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// written is a connection that holds what is written to it, and gives what a test has put there to read.
type written struct {
	net.Conn // nil: nothing else is used
	bytes.Buffer
	come bytes.Buffer
}

func (w *written) Read(b []byte) (int, error)  { return w.come.Read(b) }
func (w *written) Write(b []byte) (int, error) { return w.Buffer.Write(b) }
func (w *written) Close() error                { return nil }

// TestTurnsOfStreams: an answer of HTTP/2 has its turn until its bytes have left, or at its end the frame that says so, or until the program resets it.
func TestTurnsOfStreams(t *testing.T) {
	t.Parallel()
	head := func(w *http2.Framer) error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte("head"), EndHeaders: true})
	}
	data := func(n int, end bool) func(*http2.Framer) error {
		return func(w *http2.Framer) error { return w.WriteData(5, end, make([]byte, n)) }
	}
	beside := func(w *http2.Framer) error { return w.WriteData(7, true, make([]byte, 2000)) }
	settings := func(w *http2.Framer) error { return w.WriteSettings() }
	tests := map[string]struct {
		bytes int
		end   bool
		steps []func(*http2.Framer) error // the turn is over with the last one, and not before
		came  func(*http2.Framer) error   // what the program sends in the end, where it is that
	}{
		"a head":                {0, false, []func(*http2.Framer) error{settings, head}, nil},
		"bytes in two frames":   {1000, false, []func(*http2.Framer) error{head, data(600, false), settings, data(400, false)}, nil},
		"bytes beside another":  {1000, false, []func(*http2.Framer) error{head, beside, data(1000, false)}, nil},
		"an end beside another": {1000, true, []func(*http2.Framer) error{head, data(1000, false), beside, data(0, true)}, nil},
		"an end":                {1000, true, []func(*http2.Framer) error{head, data(1000, false), data(0, true)}, nil},
		"a cut":                 {0, true, []func(*http2.Framer) error{head, func(w *http2.Framer) error { return w.WriteRSTStream(5, http2.ErrCodeInternal) }}, nil},
		"a reset":               {10, true, []func(*http2.Framer) error{head, data(10, false)}, func(w *http2.Framer) error { return w.WriteRSTStream(5, http2.ErrCodeCancel) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			below, frames := new(written), http2.NewFramer(&said, nil)
			c := &conn{}
			top := newFrames(below, c)
			below.come.WriteString(http2.ClientPreface)
			over := false
			c.turn.giving = func(bool) func(bool) { return func(bool) { over = true } }
			c.turnOfStream(5).writes(tt.bytes, tt.end)
			for i, step := range tt.steps {
				if err := step(frames); err != nil {
					t.Fatal(err)
				}
				for b := said.Bytes(); len(b) > 0; b = b[min(len(b), 7):] { // as it may be cut anywhere
					if over {
						t.Fatalf("over before step %d had left", i)
					}
					if _, err := top.Write(b[:min(len(b), 7)]); err != nil {
						t.Fatal(err)
					}
				}
				said.Reset()
			}
			if tt.came != nil {
				if over {
					t.Fatal("over before the program has reset it")
				}
				if err := tt.came(http2.NewFramer(&below.come, nil)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(struct{ io.Reader }{top}); err != nil {
					t.Fatal(err)
				}
			}
			if !over {
				t.Error("not over")
			}
		})
	}
}

// TestABlockedStream: who writes to a program that does not read holds others up for a moment alone.
func TestABlockedStream(t *testing.T) {
	t.Parallel()
	c, over := &conn{}, make(chan struct{})
	newFrames(new(written), c)
	c.turn.giving = func(bool) func(bool) { return func(bool) { close(over) } }
	began := time.Now()
	c.turnOfStream(5).writes(10, false)()
	<-over
	if took := time.Since(began); took < framesMost {
		t.Errorf("over after %v", took)
	}
}

// TestStreamsTakeTurns: what one stream gives after another counts as an answer of its own, and what it gives after itself does not.
func TestStreamsTakeTurns(t *testing.T) {
	t.Parallel()
	c, said := &conn{}, new(bytes.Buffer)
	top, frames := newFrames(new(written), c), http2.NewFramer(said, nil)
	var answers []bool
	c.turn.giving = func(answer bool) func(bool) {
		answers = append(answers, answer)
		return func(bool) {}
	}
	one, other := c.turnOfStream(5), c.turnOfStream(5)
	for i, of := range []*turn{one, one, other, one, one, other} {
		if i == 0 || i == 2 {
			of.begins(func() {})
		}
		left := of.writes(1, false)
		if err := frames.WriteData(5, false, []byte{0}); err != nil {
			t.Fatal(err)
		}
		if _, err := said.WriteTo(top); err != nil {
			t.Fatal(err)
		}
		left()
	}
	if want := []bool{true, false, true, true, false, true}; !slices.Equal(answers, want) {
		t.Errorf("%v, want %v", answers, want)
	}
}

// TestADocumentIsGivenWithItsHead: others wait for what comes behind a head, for a moment.
func TestADocumentIsGivenWithItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, said, given := &conn{}, new(bytes.Buffer), new(atomic.Int32)
		top, frames := newFrames(new(written), c), http2.NewFramer(said, nil)
		c.turn.giving = func(bool) func(bool) { return func(bool) { given.Add(1) } }
		leaves := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := said.WriteTo(top); err != nil {
				t.Fatal(err)
			}
		}
		for want, comes := range []bool{true, false} {
			of := c.turnOfStream(5)
			of.inOrder(true, true)
			of.writes(0, false)
			leaves(frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte("head"), EndHeaders: true}))
			if int(given.Load()) != want {
				t.Fatal("others are given something behind a head")
			}
			if comes {
				of.inOrder(true, false)
				of.writes(10, true)
				leaves(frames.WriteData(5, true, make([]byte, 10)))
			}
			time.Sleep(2 * moreMost)
			if got := int(given.Load()); got != want+1 {
				t.Errorf("given %d times, want %d", got, want+1)
			}
		}
	})
}

// TestOrders: of which answers which pieces wait.
func TestOrders(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]order{"application/json": orderEnds, "application/grpc+proto": orderEnds, "text/event-stream": orderAll, "image/png": orderNone} {
		if got := orderOf(exchange.HTTP, media); got != want {
			t.Errorf("%s: %v, want %v", media, got, want)
		}
	}
}

// TestStreamOf: net/http says in no interface which stream it writes an answer to, and it is found all the same.
func TestStreamOf(t *testing.T) {
	t.Parallel()
	var got []uint32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = append(got, streamOf(w)) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for range 2 {
		res, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if want := []uint32{1, 3}; !slices.Equal(got, want) || streamOf(httptest.NewRecorder()) != 0 || streamOf(nil) != 0 {
		t.Errorf("%v, want %v", got, want)
	}
}
