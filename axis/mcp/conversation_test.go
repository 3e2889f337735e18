package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

const (
	askInit = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	ansInit = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"files","version":"1"}}}`
	inited  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// say gives lines to a conversation: those that begin with < are the server's.
func say(t testing.TB, c *mcp.Conversation, lines ...string) {
	t.Helper()
	for _, l := range lines {
		from := mcp.Client
		if l[0] == '<' {
			from, l = mcp.Server, l[1:]
		}
		if err := c.Line(from, []byte(l+"\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A record of text ends where a message comes, whatever the scrubber could still be in the middle of; but for a key of several lines, which no
// message uncovers.
func TestTextBetweenMessages(t *testing.T) {
	t.Parallel()
	key := []string{"-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7xyzABCDEF12", "ggSjAgEAAoIBAQC7MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB", "-----END PRIVATE KEY-----"}
	r := newRig(t, "LONG_SECRET=starting up\nand then a lot more of it")
	c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "p", Recorded: &mcp.Recorded{Server: "files", Conversation: 1}})
	say(t, c, "<starting up", "<"+inited, "<one", "<two "+key[0], "<"+key[1], "<"+inited, "<"+key[2], "<"+key[3], "<three", "<"+inited)
	if err := c.End(mcp.Ended{}); err != nil {
		t.Fatal(err)
	}
	told := "files server notifications/initialized %d-0 " + inited + " > "
	r.want("open files 1 stdio program=p args=[] url= ",
		`files server text 1 "starting up\n"`, fmt.Sprintf(told, 2), `files server text 3 "one\n"`, fmt.Sprintf(told, 6),
		fmt.Sprintf(`files server text 5 "two %s\nthree\n"`, r.scrub.String(strings.Join(key, "\n"))), fmt.Sprintf(told, 10), "close files 10 ?")
}

func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "/usr/bin/node", Args: []string{"--x", "server.js"}})
	say(t, c, "<listening", askInit)
	if len(r.records()) > 0 || c.Server() != "" {
		t.Error("something is recorded before the server told its name")
	}
	say(t, c, "<"+ansInit)
	want := []string{
		`open files 1 stdio program=/usr/bin/node args=["--x" "server.js"] url= 2025-06-18`,
		`files server text 1 "listening\n"`,
		`files client initialize 2-3 ` + askInit + ` > ` + ansInit,
	}
	r.want(want...)
	say(t, c, inited,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"b"}}`,
		`<{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`,
		`<{"jsonrpc":"2.0","id":2,"result":{}}`,
		`<{"jsonrpc":"2.0","id":9,"result":{}}`,
		`<{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":"z","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":"y","method":"tools/call"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}}`,
	)
	if err := c.Text(mcp.Server, []byte(`{"jsonrpc":"2.0","id":"z","res`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Stderr([]byte("panic\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.End(mcp.Ended{By: mcp.Server, Exited: true, ExitCode: 137, Signal: "SIGKILL"}); err != nil {
		t.Fatal(err)
	}
	r.want(append(want,
		`files client notifications/initialized 4-0 `+inited+` > `,
		`files server roots/list 7-8 {"jsonrpc":"2.0","id":1,"method":"roots/list"} > {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`,
		`files client tools/call 6-9 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"b"}} > {"jsonrpc":"2.0","id":2,"result":{}}`,
		`files server text 10 "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"`,
		`files client tools/call 5-11 {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}} > {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
		`files client notifications/cancelled 14-0 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}} > `,
		`files server text 15 "{\"jsonrpc\":\"2.0\",\"id\":\"z\",\"res"`,
		`files stderr text 15 "panic\n"`,
		`files client tools/call 12-0 {"jsonrpc":"2.0","id":"z","method":"tools/call"} >  error: server ended`,
		`files client tools/call 13-0 {"jsonrpc":"2.0","id":"y","method":"tools/call"} >  error: cancelled`,
		`close files 15 137 SIGKILL`,
	)...)
}
