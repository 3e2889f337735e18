package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A memoryTape is a tape in memory, and what writes to it.
type memoryTape struct {
	t     testing.TB
	buf   bytes.Buffer
	store *cas.Memory
	rec   *tape.Recorder
}

func newMemoryTape(t testing.TB) *memoryTape {
	t.Helper()
	m := &memoryTape{t: t, store: cas.NewMemory()}
	w, err := tape.NewWriter(&m.buf, &tape.Header{Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	m.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: m.store})
	return m
}

// records returns what is on the tape.
func (m *memoryTape) records() []*tape.Record {
	m.t.Helper()
	if err := m.rec.Flush(); err != nil {
		m.t.Fatal(err)
	}
	r, err := tape.NewReader(bytes.NewReader(m.buf.Bytes()), "test")
	if err != nil {
		m.t.Fatal(err)
	}
	var out []*tape.Record
	for rec, err := range r.Records() {
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// book reads the tape as a Book.
func (m *memoryTape) book(o *mcp.BookOptions) *mcp.Book {
	m.t.Helper()
	recs := m.records()
	b, err := mcp.NewBook(func(yield func(*tape.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}, m.store, o)
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

// opened is the server that scenes are with.
func opened() *mcp.Opened {
	return &mcp.Opened{Transport: mcp.Stdio, Program: "/usr/bin/server", Args: []string{"--dir", "/data"}}
}

// recorded plays a scene into a tape: a line a string, "> " from the client, "< " from the server, "! " on stderr, "~ 2s" a pause,
// "= " the end of the server, as many characters as its exit status, "killed" the same by SIGTERM, "terminated" that of one that its client had left. Without an end the client ends it, and the server with 0.
func recorded(t testing.TB, lines ...string) *memoryTape {
	t.Helper()
	m := newMemoryTape(t)
	m.scene(mcp.NewLog(m.rec, nil, nil, nil), opened(), lines...)
	return m
}

func (m *memoryTape) scene(log *mcp.Log, o *mcp.Opened, lines ...string) {
	m.t.Helper()
	c := log.Begin(o)
	end := mcp.Ended{By: mcp.Client, Exited: true}
	for _, l := range lines {
		what, text, _ := strings.Cut(l, " ")
		var err error
		switch what {
		case ">":
			err = c.Line(mcp.Client, []byte(text+"\n"), 0)
		case "<":
			err = c.Line(mcp.Server, []byte(text+"\n"), 0)
		case "half":
			err = c.Text(mcp.Server, []byte(text))
		case "!":
			err = c.Stderr([]byte(text + "\n"))
		case "~":
			var d time.Duration
			d, err = time.ParseDuration(text)
			time.Sleep(d) // of a bubble's clock
		case "=":
			end = mcp.Ended{By: mcp.Server, Exited: true, ExitCode: len(text)}
		case "terminated":
			end = mcp.Ended{By: mcp.Client, Exited: true, ExitCode: 143, Signal: "SIGTERM"}
		case "killed":
			end = mcp.Ended{By: mcp.Server, Exited: true, ExitCode: 143, Signal: "SIGTERM"}
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := c.End(end); err != nil {
		m.t.Fatal(err)
	}
}

// A client is answered by a Served.
type client struct {
	t     testing.TB
	in    *io.PipeWriter
	lines chan string
	errs  syncBuffer
	done  chan struct{}
	exit  int
	err   error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// converse begins a conversation with s. The options' streams are its own, but for an Err.
func converse(t testing.TB, s *mcp.Served, o mcp.ServeOptions) *client {
	t.Helper()
	in, w := io.Pipe()
	r, out := io.Pipe()
	c := &client{t: t, in: w, lines: make(chan string, 10000), done: make(chan struct{})}
	o.In, o.Out = in, out
	if o.Err == nil {
		o.Err = &c.errs
	}
	go func() {
		defer close(c.done)
		c.exit, c.err = s.Serve(context.Background(), &o)
		out.Close()
		in.CloseWithError(io.ErrClosedPipe)
	}()
	go func() {
		defer close(c.lines)
		br := bufio.NewReaderSize(r, 1<<20)
		for {
			line, err := br.ReadString('\n')
			if line != "" {
				c.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.end() })
	return c
}

// say says lines.
func (c *client) say(lines ...string) {
	c.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(c.in, l+"\n"); err != nil {
			c.t.Fatalf("the client said %s: %v", l, err)
		}
	}
}

// hears expects lines, in this order.
func (c *client) hears(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		got, ok := <-c.lines
		if !ok {
			c.t.Fatalf("the conversation has ended, want %s", want)
		}
		if got = strings.TrimSuffix(got, "\n"); got != want {
			c.t.Fatalf("heard %s\nwant  %s", got, want)
		}
	}
}

// hearsNothing expects that there is nothing to hear for now, of a bubble in which everything waits.
func (c *client) hearsNothing() {
	c.t.Helper()
	select {
	case got := <-c.lines:
		c.t.Fatalf("heard %s, want nothing", got)
	default:
	}
}

// end ends it from the client's side, and returns what was heard beside.
func (c *client) end() (rest string) {
	c.in.Close()
	for l := range c.lines {
		rest += l
	}
	<-c.done
	return rest
}
