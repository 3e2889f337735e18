package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// bareTape is a tape as another producer writes it, with calls and their results alone: no mcp_open, no places, no digests of params.
func bareTape(t *testing.T, server string, calls ...string) *mcp.Served {
	t.Helper()
	return bareTapeOf(t, server, `{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, `{"jsonrpc":"2.0","id":%d,"result":%s}`, calls...)
}

// bareTapeOf is that of a producer that keeps a request (its id, method and params) and an answer (its id and result) so.
func bareTapeOf(t *testing.T, server, request, answer string, calls ...string) *mcp.Served {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`{"type":"header","version":1,"harn_version":"other 1.0","started_at_unix_ms":null,"script_path":"a.star","argv":[]}` + "\n")
	payload := func(text string) (digest, payload string) {
		d := cas.Sum([]byte(text)).String()
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return d, fmt.Sprintf(`{"content_hash":"%s","text":%s}`, d, quoted)
	}
	for i, call := range calls {
		method, rest, _ := strings.Cut(call, " ")
		params, result, _ := strings.Cut(rest, " => ")
		asked, request := payload(fmt.Sprintf(request, i, method, params))
		answered, response := payload(fmt.Sprintf(answer, i, result))
		fmt.Fprintf(&b, `{"type":"record","seq":%d,"phase":"user_script","virtual_time_ms":%d,"monotonic_ms":%[2]d,"kind":{"kind":"mcp_json_rpc",`+
			`"server":%q,"method":%q,"request_digest":"%s","response_digest":"%s","latency_ms":2,"request_payload":%s,"response_payload":%s}}`+"\n",
			i, i*10, server, method, asked, answered, request, response)
	}
	r, err := tape.NewReader(&b, "bare")
	if err != nil {
		t.Fatal(err)
	}
	book, err := mcp.NewBook(r.Records(), cas.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := book.Named("")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// text is the result of a tool, and of a call of it.
func text(s string) string { return `{"content":[{"type":"text","text":"` + s + `"}]}` }

// headless is a tape of calls to all that a server may have.
func headless(t *testing.T) *mcp.Served {
	return bareTape(t, "files",
		`tools/call {"name":"read","arguments":{"text":"a"}} => `+text("A"), `tools/call {"name":"stat","arguments":{"text":"a"}} => `+text("of A"),
		`tools/call {"name":"read","arguments":{"text":"b"}} => `+text("B"),
		`prompts/get {"name":"greet"} => {"messages":[]}`, `resources/read {"uri":"file:///a"} => {"contents":[{"uri":"file:///a","text":"A"}]}`)
}

// useHeadless does what a client does with it.
func useHeadless(c *webClient) {
	c.t.Helper()
	ctx, init := context.Background(), c.InitializeResult()
	if caps := init.Capabilities; init.ServerInfo.Name != "files" || caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || caps.Logging != nil {
		c.t.Errorf("the server says of itself %+v, %+v", init.ServerInfo, caps)
	}
	if err := c.Ping(ctx, nil); err != nil {
		c.t.Error(err)
	}
	if got := c.tools(); !slices.Equal(got, []string{"read", "stat"}) {
		c.t.Errorf("the tools are %q", got)
	}
	if p, err := c.ListPrompts(ctx, nil); err != nil || len(p.Prompts) != 1 || p.Prompts[0].Name != "greet" {
		c.t.Errorf("the prompts are %+v, %v", p, err)
	}
	if r, err := c.ListResources(ctx, nil); err != nil || len(r.Resources) != 1 || r.Resources[0].URI != "file:///a" {
		c.t.Errorf("the resources are %+v, %v", r, err)
	}
	for _, call := range [][3]string{{"read", "b", "B"}, {"read", "a", "A"}, {"stat", "a", "of A"}, {"read", "a", "A"}} {
		if got := c.call(call[0], call[1], nil); got != call[2] {
			c.t.Errorf("%s of %s is %q", call[0], call[1], got)
		}
	}
	if got := c.call("read", "c", nil); !strings.Contains(got, "not on the tape: tools/call read") {
		c.t.Errorf("what the tape lacks is %q", got)
	}
	if r, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: "file:///a"}); err != nil || r.Contents[0].Text != "A" {
		c.t.Errorf("the resource is %+v, %v", r, err)
	}
}

// A client of the SDK works with a tape that holds calls alone, over lines and over HTTP, whatever version it begins with.
func TestHeadlessTape(t *testing.T) {
	t.Parallel()
	for _, version := range slices.Concat([]string{overSSE, ""}, webVersions) {
		t.Run("over HTTP as "+version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := serveWeb(t, headless(t))
				c := connect(t, transportTo(srv.URL, version, srv.Client()), version)
				defer c.close()
				useHeadless(c)
				if got := c.InitializeResult().ProtocolVersion; version != "" && version < "2026" && got != version {
					t.Errorf("the client speaks %s, and is answered by %s", version, got)
				}
			})
		})
		t.Run("over lines as "+version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, toServer := io.Pipe()
				fromServer, out := io.Pipe()
				ended := make(chan error, 1)
				go func() {
					_, err := headless(t).Serve(context.Background(), &mcp.ServeOptions{In: in, Out: out, Lenient: true})
					out.Close()
					ended <- err
				}()
				c := connect(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, version)
				useHeadless(c)
				c.close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server has what it was asked for, and no more; a person is told that it is guessed.
func TestHeadlessHasWhatWasAsked(t *testing.T) {
	t.Parallel()
	var told []string
	c := converse(t, bareTape(t, `a "b"#2`, `tools/call {"name":"x"} => {}`), mcp.ServeOptions{Lenient: true, Say: func(s string) { told = append(told, s) }})
	for _, tt := range []struct{ wants, gets string }{{"2025-03-26", "2025-03-26"}, {"9999-01-01", "2025-11-25"}, {"no version", "2025-11-25"}} {
		c.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + tt.wants + `","capabilities":{}}}`)
		c.hears(`{"jsonrpc":"2.0","id":"i","result":{"capabilities":{"tools":{}},"protocolVersion":"` + tt.gets + `","serverInfo":{"name":"a \"b\"","version":"unknown"}}}`)
	}
	c.say(said(initialized), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`)
	c.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"inputSchema":{"type":"object"},"name":"x"}]}}`)
	if got := <-c.lines; !strings.Contains(got, "not on the tape: prompts/list") {
		t.Errorf("prompts of a server that was asked for none: %s", got)
	}
	c.end()
	if len(told) != 3 || !strings.Contains(told[0], "does not hold what the server said of itself") {
		t.Errorf("told %q", told)
	}
	c = converse(t, bareTape(t, "s", `tools/list {"cursor":"2"} => {"tools":[]}`, `tools/call {"name":"x"} => {}`), mcp.ServeOptions{Lenient: true})
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if got := <-c.lines; !strings.Contains(got, "not on the tape: tools/list") {
		t.Errorf("a list of which the tape holds another page: %s", got)
	}
}

// Some producers keep less than the messages: the params and the result alone, or no version. Nothing is answered otherwise for that.
func TestLessThanMessages(t *testing.T) {
	t.Parallel()
	const asked = `{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"x","arguments":{"n":1}}}`
	for _, tt := range []struct{ request, answer, gets string }{
		{`%[3]s`, `%[2]s`, `"result":{"content":[]}`},
		{` {"id":%d,"method":"%s","params":%s}` + "\n", `{"id":%d,"result":%s,"error":null}`, `"result":{"content":[]}`},
		{`%[3]s`, `{"error":{"code":-1,"message":"no"},"was":%[2]s}`, `"error":{"code":-1,"message":"no"}`},
	} {
		s := bareTapeOf(t, "s", tt.request, tt.answer, `tools/call {"name":"y"} => {"y":1}`, `tools/call {"arguments":{"n":1},"name":"x"} => {"content":[]}`)
		c := converse(t, s, mcp.ServeOptions{Lenient: true})
		c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, asked)
		c.hears(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"inputSchema":{"type":"object"},"name":"y"},{"inputSchema":{"type":"object"},"name":"x"}]}}`,
			`{"jsonrpc":"2.0","id":"q",`+tt.gets+`}`)
		c.end()
	}
}
