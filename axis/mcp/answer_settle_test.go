package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

const (
	listTools = `> {"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	toolsAre  = `< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`
)

// equals records conversations with equal servers: each begins alike, and then has lines of its own.
func equals(t *testing.T, all ...[]string) *mcp.Book {
	t.Helper()
	m := newMemoryTape(t)
	log := mcp.NewLog(m.rec, nil, nil, nil)
	for _, lines := range all {
		m.scene(log, opened(), append([]string{initialize, initResult, initialized, listTools, toolsAre}, lines...)...)
	}
	return m.book(nil)
}

// settled converses with a spawn that is settled before it is served.
func settled(t *testing.T, b *mcp.Book, changed func(conversation, seq uint64) bool) *client {
	t.Helper()
	s := spawned(t, b)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := &client{t: t, in: toServer, lines: make(chan string, 1000), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if c.err = s.Settle(t.Context(), &mcp.ServeOptions{In: in, Out: out}, changed); c.err == nil {
			c.exit, c.err = s.Serve(t.Context(), &mcp.ServeOptions{In: in, Out: out})
		}
		out.Close()
		in.CloseWithError(io.ErrClosedPipe)
	}()
	go func() {
		defer close(c.lines)
		_, _ = io.Copy(lineWriter(c.lines), fromServer)
	}()
	t.Cleanup(func() { c.end() })
	return c
}

// A lineWriter sends each line that is written to it in one go.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		w <- string(line)
	}
	return len(b), nil
}

// Equal servers that are started in another order than was recorded are each answered from their own conversation.
func TestEqualServersInAnotherOrder(t *testing.T) {
	t.Parallel()
	tool := func(text string) []string {
		return []string{callTool(3, "t", fmt.Sprintf(`{"n":%q}`, text)), result(3, text)}
	}
	synctest.Test(t, func(t *testing.T) {
		b := equals(t, tool("a"), tool("b"), tool("c"))
		var clients []*client
		for range 3 {
			c := settled(t, b, nil)
			c.opens()
			c.say(as("7", listTools))
			c.hears(as("7", toolsAre))
			clients = append(clients, c)
		}
		for _, i := range []int{1, 0, 2} {
			text := []string{"c", "a", "b"}[i]
			clients[i].say(as("8", tool(text)[0]))
			clients[i].hears(as("8", result(0, text)))
		}
		for _, c := range clients {
			if rest := c.end(); rest != "" || c.err != nil {
				t.Errorf("heard %q at the end, error %v", rest, c.err)
			}
		}
		if n := len(b.Unasked()) + len(b.Refused()); n != 0 {
			t.Errorf("%d requests unasked or refused", n)
		}
	})
}

// What cannot be told by what is asked first goes by the order of the starts.
func TestEqualServersInTheOrderOfStarts(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return fmt.Sprintf("of %d", n) }
	same := []string{callTool(3, "t", `{}`), result(3, text(0))}
	for name, all := range map[string][2][]string{
		"other answers":          {{callTool(3, "t", `{}`), result(3, text(0))}, {callTool(3, "t", `{}`), result(3, text(1))}},
		"a notification waits":   {append([]string{changedNote}, same...), append([]string{changedNote}, same...)},
		"the server went away":   {append(same, "= 1"), append(same, "= 1")},
		"it did something else":  {same, same},
		"it was asked of nobody": {same, same},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := equals(t, all[0], all[1])
				changed := func(uint64, uint64) bool { return name == "it did something else" }
				for i, c := range []*client{settled(t, b, changed), settled(t, b, changed)} {
					c.opens()
					c.say(as("7", listTools))
					c.hears(as("7", toolsAre))
					if name == "a notification waits" {
						c.hears(said(changedNote))
					}
					want := text(0)
					if name == "other answers" {
						want = text(i)
					}
					if name != "it was asked of nobody" {
						c.say(as("8", callTool(0, "t", `{}`)))
						c.hears(as("8", result(0, want)))
					}
					if rest := c.end(); rest != "" || c.err != nil {
						t.Errorf("heard %q at the end, error %v", rest, c.err)
					}
				}
				if n := len(b.Unasked()); n != 0 != (name == "it was asked of nobody") {
					t.Errorf("%d requests unasked", n)
				}
			})
		})
	}
}

// A request that none of equal servers was asked is refused by the one that is next.
func TestEqualServersRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := equals(t, nil, nil)
		c := settled(t, b, nil)
		c.opens()
		c.say(as("9", callTool(0, "other", `{}`)))
		if got := <-c.lines; !strings.Contains(got, "not on the tape") {
			t.Errorf("heard %s", got)
		}
		c.end()
	})
}
