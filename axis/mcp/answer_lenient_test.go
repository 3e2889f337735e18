package mcp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

func lenient(t *testing.T, o mcp.ServeOptions, lines ...string) *client {
	t.Helper()
	s, err := recorded(t, lines...).book(nil).Named("")
	if err != nil {
		t.Fatal(err)
	}
	o.Lenient = true
	return converse(t, s, o)
}

func TestLenientAnswersAnyClient(t *testing.T) {
	t.Parallel()
	var told []string
	c := lenient(t, mcp.ServeOptions{Say: func(s string) { told = append(told, s) }}, initialize, initResult, initialized,
		callTool(2, "a", `{"n":1}`), result(2, "first"), callTool(3, "a", `{"n":1}`), result(3, "second"), callTool(4, "b", `{}`))
	call := func(id string) string { return as(id, callTool(0, "a", `{"n":1}`)) }
	c.say(call("1")) // before it says who it is
	c.hears(as("1", result(0, "first")))
	c.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"9"}}}`)
	c.hears(as(`"i"`, initResult))
	c.say(call("2"), call("3"), `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":7,"other":1},"arguments":{"n":1},"name":"a"}}`)
	c.hears(as("2", result(0, "second")), as("3", result(0, "second")), as("4", result(0, "second")))
	c.say("["+call("5")+","+call("6")+"]", "no message")
	c.hears(as("5", result(0, "second")), as("6", result(0, "second")))
	c.say(as("7", callTool(0, "b", `{}`))) // which got no answer then
	if got := <-c.lines; !strings.Contains(got, `"id":7,"error"`) || !strings.Contains(got, "got no answer") {
		t.Errorf("what the server never answered: %s", got)
	}
	c.say(`{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"debug"}}`)
	c.hears(`{"jsonrpc":"2.0","id":8,"result":{}}`)
	if rest := c.end(); rest != "" || c.err != nil {
		t.Errorf("heard %q, error %v", rest, c.err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "2024-11-05") || !strings.Contains(told[0], "2025-11-25") {
		t.Errorf("told %q", told)
	}
}

// What the server asked within a call a client is asked that can be, and the answer waits for its response.
func TestLenientAsksWhatTheClientCan(t *testing.T) {
	t.Parallel()
	scene := []string{
		initialize, initResult, callTool(2, "s", `{}`),
		`< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`, `> {"jsonrpc":"2.0","id":1,"result":{}}`, result(2, "S"),
	}
	synctest.Test(t, func(t *testing.T) {
		c := lenient(t, mcp.ServeOptions{}, scene...)
		c.say(as("1", callTool(0, "s", `{}`)))
		c.hears(as("1", result(0, "S"))) // it cannot be asked
		c.say(strings.Replace(said(initialize), `"capabilities":{}`, `"capabilities":{"sampling":{}}`, 1))
		c.hears(said(initResult))
		c.say(as("2", callTool(0, "s", `{}`)))
		c.hears(`{"jsonrpc":"2.0","id":"tapedeck-1","method":"sampling/createMessage","params":{}}`)
		time.Sleep(30 * time.Second)
		c.hearsNothing()
		c.say(`{"jsonrpc":"2.0","id":"tapedeck-1","result":{"role":"assistant"}}`)
		c.hears(as("2", result(0, "S")))
		c.say(as("3", callTool(0, "s", `{}`))) // a client that never answers what it is asked
		c.hears(`{"jsonrpc":"2.0","id":"tapedeck-2","method":"sampling/createMessage","params":{}}`, as("3", result(0, "S")))
		c.end()
	})
}

// A client of the versions with initialize is answered from a tape of one without it.
func TestLenientBeginsEitherWay(t *testing.T) {
	t.Parallel()
	c := lenient(t, mcp.ServeOptions{},
		`> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`< {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be nice","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"1"}}}}`)
	c.say(said(initialize))
	c.hears(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}},"instructions":"be nice","protocolVersion":"2025-11-25","serverInfo":{"name":"new","version":"1"}}}`)
}

func TestNamed(t *testing.T) {
	t.Parallel()
	m := newMemoryTape(t)
	log := mcp.NewLog(m.rec, nil, nil, nil)
	for i, name := range []string{"files", "web", "files"} {
		m.scene(log, opened(), initialize, strings.Replace(initResult, `"files"`, `"`+name+`"`, 1), callTool(i+2, "t", `{}`), result(i+2, "of "+name))
	}
	b := m.book(nil)
	if _, err := b.Named(""); err == nil || !strings.Contains(err.Error(), "2 MCP servers") || !strings.HasSuffix(err.Error(), ": files, web") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := b.Named("other"); err == nil || !strings.Contains(err.Error(), `"other": it has files, web`) {
		t.Errorf("of another name: %v", err)
	}
	for name, want := range map[string]string{"files": "files", "web": "web", "files#2": "files#2"} {
		s, err := b.Named(name)
		if err != nil || s.Recorded().Server != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
