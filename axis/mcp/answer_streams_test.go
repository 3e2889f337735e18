package mcp_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

const (
	changedNote  = `< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	rootsRequest = `< {"jsonrpc":"2.0","id":0,"method":"roots/list"}`
)

// A stream is a response of events that a test reads line by line.
type stream struct {
	t     *testing.T
	res   *http.Response
	lines *bufio.Scanner
	leave context.CancelFunc
}

// openStream sends a request and reads the head of its answer.
func openStream(t *testing.T, srv *httptest.Server, method, body string, header ...string) *stream {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(leave)
	req, err := http.NewRequestWithContext(ctx, method, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &stream{t, res, bufio.NewScanner(res.Body), leave}
}

// next is the next event: its id and its message. Both are "" at the end.
func (s *stream) next() (id, message string) {
	s.t.Helper()
	for s.lines.Scan() {
		switch key, value, _ := strings.Cut(s.lines.Text(), ": "); key {
		case "id":
			id = value
		case "data":
			message = value
		case "":
			return id, message
		}
	}
	return "", ""
}

// hears expects messages, and returns the id of the last.
func (s *stream) hears(messages ...string) (id string) {
	s.t.Helper()
	for _, want := range messages {
		var got string
		if id, got = s.next(); got != want {
			s.t.Fatalf("heard %q, want %q", got, want)
		}
	}
	return id
}

// begin begins a session that may be asked for roots.
func begin(t *testing.T, srv *httptest.Server) (session []string) {
	t.Helper()
	res, _ := post(t, srv, strings.Replace(said(initialize), `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1))
	session = []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
	post(t, srv, said(initialized), session...)
	return session
}

// What a server said unasked comes on the session's own stream, once: what is said while nobody listens waits, and a connection that
// broke goes on behind the event that it heard last.
func TestStreamOfASession(t *testing.T) {
	t.Parallel()
	srv := handler(t, rootsRequest, `> {"jsonrpc":"2.0","id":0,"result":{"roots":[]}}`, callTool(2, "grow", `{}`), result(2, "grown"), changedNote)
	session := begin(t, srv)
	own := openStream(t, srv, "GET", "", session...)
	asked := own.hears(`{"jsonrpc":"2.0","id":"tapedeck-1","method":"roots/list"}`)
	if res, _ := do(t, srv, "GET", "", session...); res.StatusCode != http.StatusConflict {
		t.Errorf("a second stream: %d", res.StatusCode)
	}
	post(t, srv, `{"jsonrpc":"2.0","id":"tapedeck-1","result":{"roots":[]}}`, session...)
	grow := func(id string) {
		t.Helper()
		if res, body := post(t, srv, as(id, callTool(0, "grow", `{}`)), session...); body != as(id, result(0, "grown")) ||
			res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the answer is %s %s", res.Header.Get("Content-Type"), body)
		}
	}
	grow("5")
	own.hears(said(changedNote))
	own.leave() // a connection that broke
	grow("6")
	again := openStream(t, srv, "GET", "", slices.Concat(session, []string{"Last-Event-ID", asked})...)
	again.hears(said(changedNote), said(changedNote))
	for _, wrong := range []string{"7-1", "x", "0-x", "0--1"} {
		if res, _ := do(t, srv, "GET", "", slices.Concat(session, []string{"Last-Event-ID", wrong})...); res.StatusCode != http.StatusBadRequest {
			t.Errorf("the event %q: %d", wrong, res.StatusCode)
		}
	}
	if res, _ := do(t, srv, "GET", "", "Mcp-Session-Id", "none"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the stream of no session: %d", res.StatusCode)
	}
	do(t, srv, "DELETE", "", session...)
	if id, message := again.next(); id != "" || message != "" {
		t.Errorf("heard %q behind the end of the session", message)
	}
}

// The stream of a POST goes on in another connection: what its client missed comes there, and the answer.
func TestStreamOfAPostGoesOn(t *testing.T) {
	t.Parallel()
	const note = `< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	synctest.Test(t, func(t *testing.T) {
		srv := handler(t, callTool(2, "long", `{}`), note, rootsRequest, `> {"jsonrpc":"2.0","id":0,"result":{"roots":[]}}`, result(2, "done"))
		session := begin(t, srv)
		posted := openStream(t, srv, "POST", as("8", callTool(0, "long", `{}`)), session...)
		first := posted.hears(said(note))
		posted.leave() // before it is asked
		again := openStream(t, srv, "GET", "", slices.Concat(session, []string{"Last-Event-ID", first})...)
		asked := `{"jsonrpc":"2.0","id":"tapedeck-1","method":"roots/list"}`
		again.hears(asked)
		heard := make(chan string)
		go func() {
			_, message := again.next()
			heard <- message
		}()
		synctest.Wait()
		select {
		case message := <-heard:
			t.Fatalf("heard %q before the response", message)
		default:
		}
		post(t, srv, `{"jsonrpc":"2.0","id":"tapedeck-1","result":{"roots":[]}}`, session...)
		if message := <-heard; message != as("8", result(0, "done")) {
			t.Errorf("heard %q, want the answer", message)
		}
		if id, message := again.next(); id != "" || message != "" {
			t.Errorf("heard %q behind the answer", message)
		}
		whole := openStream(t, srv, "GET", "", slices.Concat(session, []string{"Last-Event-ID", "1-0"})...)
		whole.hears(said(note), asked, as("8", result(0, "done"))) // what has ended can be heard again
	})
}

// A client over stdio hears what was said unasked behind the answer that it followed.
func TestUnaskedOverLines(t *testing.T) {
	t.Parallel()
	c := lenient(t, mcp.ServeOptions{}, initialize, initResult, initialized, changedNote, callTool(2, "a", `{}`), result(2, "A"), changedNote, changedNote)
	c.say(said(initialize))
	c.hears(said(initResult))
	c.hearsNothing() // until it is there
	c.say(said(initialized))
	c.hears(said(changedNote))
	c.say(as("4", callTool(0, "a", `{}`)))
	c.hears(as("4", result(0, "A")), said(changedNote), said(changedNote))
	if rest := c.end(); rest != "" {
		t.Errorf("heard %q at the end", rest)
	}
}

// An answer comes apart from a notification before it: some clients lose progress that one read brings together with the answer.
func TestLenientAnswersApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const note = `< {"jsonrpc":"2.0","method":"notifications/message","params":{}}`
		c := lenient(t, mcp.ServeOptions{}, initialize, initResult, callTool(2, "a", `{}`), note, result(2, "A"), callTool(3, "b", `{}`), result(3, "B"))
		c.say(as("4", callTool(0, "a", `{}`)))
		c.hears(said(note))
		c.say(as("5", callTool(0, "b", `{}`)))
		c.hears(as("5", result(0, "B"))) // which waits for nobody
		c.hearsNothing()
		c.hears(as("4", result(0, "A")))
	})
}

// A client that listens hears of what it does as soon as it is told that it is heard.
func TestListensAtOnce(t *testing.T) {
	t.Parallel()
	const (
		named  = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}`
		listen = `> {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{}}}`
		ack    = `< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + named + `}}`
		note   = `< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + named + `}}`
	)
	synctest.Test(t, func(t *testing.T) {
		c := lenient(t, mcp.ServeOptions{}, `> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`, `< {"jsonrpc":"2.0","id":1,"result":{}}`,
			listen, ack, callTool(2, "grow", `{}`), result(2, "grown"), note)
		c.say(said(listen))
		c.hears(said(ack))
		c.say(as("2", callTool(0, "grow", `{}`)))
		c.hears(as("2", result(0, "grown")))
		synctest.Wait()
		c.hears(said(note))
		c.end()
	})
}
