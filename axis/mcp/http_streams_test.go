package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A stream that the server closes before the answer goes on in a GET that names the last event, also with other ids.
func TestResumption(t *testing.T) {
	t.Parallel()
	server := webServer()
	sdk.AddTool(server, &sdk.Tool{Name: "later"}, func(_ context.Context, r *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
		r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "later " + in.Text}}}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})
	pings := 0
	g := replayed(t, h, func(g *webRig) []string {
		c := g.connect("2025-11-25")
		defer c.close()
		for range pings {
			if err := c.Ping(context.Background(), nil); err != nil {
				g.t.Error(err)
			}
		}
		pings++
		return []string{c.call("echo", "a", nil), c.call("later", "b", nil), c.call("later", "c", nil), c.call("echo", "d", nil)}
	})
	resumed := 0
	for _, r := range g.records() {
		if x := tape.ExchangeOf(r.Kind); x != nil && exchange.HeaderOf(x.RequestHeaders).Get("Last-Event-ID") != "" {
			resumed++
		}
	}
	if resumed < 2 {
		t.Errorf("%d streams were resumed", resumed)
	}
}

// A session that the server has forgotten is 404, and the client begins another: a conversation of its own.
func TestLostSession(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var lost atomic.Bool
	forget := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte(`"lost"`)) {
			lost.Store(true)
			http.Error(w, "session not found", http.StatusNotFound)
		} else {
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}
	})
	g := replayed(t, forget, func(g *webRig) []string {
		first := g.connect("2025-11-25")
		seen := []string{first.call("echo", "a", nil), first.call("echo", "lost", nil)}
		_ = first.Close() // a session that is missing
		second := g.connect("2025-11-25")
		defer second.close()
		return append(seen, second.call("echo", "a", nil))
	})
	if calls := strings.Join(g.calls(), "\n"); !lost.Load() || !strings.Contains(calls, "2 tools#2 client tools/call true") ||
		!strings.Contains(calls, "1 tools client tools/call false HTTP 404") {
		t.Errorf("recorded\n%s", calls)
	}
}

// Two sessions of one server at once are two conversations, and equal requests get the answers of their own.
func TestTwoSessions(t *testing.T) {
	t.Parallel()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s := webServer()
		var n atomic.Int64
		sdk.AddTool(s, &sdk.Tool{Name: "count"}, func(_ context.Context, _ *sdk.CallToolRequest, in webTool) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(n.Add(1), in.Text)}}}, nil, nil
		})
		return s
	}, nil)
	g := replayed(t, h, func(g *webRig) []string {
		a, b := g.connect("2025-11-25"), g.connect("2025-11-25")
		defer a.close()
		defer b.close()
		return []string{
			a.call("count", "x", nil), a.call("count", "x", nil), b.call("count", "x", nil), a.call("count", "x", nil),
			b.call("count", "x", nil),
		}
	})
	if calls := strings.Join(g.calls(), "\n"); strings.Count(calls, "2 tools#2 client tools/call true") != 2 {
		t.Errorf("recorded\n%s", calls)
	}
}

// A client that asks in another order gets the same answers, held up once.
func TestOtherOrder(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	run := func(g *webRig, texts ...string) map[string]string {
		c := g.connect("2025-11-25")
		defer c.close()
		seen := make(map[string]string)
		for _, text := range texts {
			seen[text] = c.call("echo", text, nil)
		}
		return seen
	}
	g := recordWeb(t, h)
	want := run(g, "a", "b", "c")
	g.replay(func(again *webRig) {
		begun := time.Now()
		if got := run(again, "c", "b", "a"); fmt.Sprint(got) != fmt.Sprint(want) {
			again.t.Errorf("replayed %v, recorded %v", got, want)
		}
		again.faithful()
		if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
			again.t.Errorf("it took %v", took)
		}
	})
}

// A call that the tape lacks is an error of that call, which names the nearest; the session goes on.
func TestRefusedOverHTTP(t *testing.T) {
	t.Parallel()
	server := webServer()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	g := recordWeb(t, h)
	c := g.connect("2025-11-25")
	c.call("echo", "a", nil)
	c.call("echo", "b", nil)
	c.close()
	g.replay(func(again *webRig) {
		c := again.connect("2025-11-25")
		got := c.call("echo", "other", nil)
		for _, want := range []string{"not on the tape: tools/call", "nearest", `params.arguments.text: "a" -> "other"`} {
			if !strings.Contains(got, want) {
				c.t.Errorf("got %q without %q", got, want)
			}
		}
		if got := c.call("echo", "b", nil); got != "echo b" {
			c.t.Errorf("then %q", got)
		}
		c.close()
		again.end()
		var refused []string
		for _, r := range again.records() {
			if k, ok := r.Kind.(*tape.MCPJSONRPC); ok && k.Error != "" {
				refused = append(refused, k.Server+" "+k.Method+" "+k.Error)
			}
			if x := tape.ExchangeOf(r.Kind); x != nil && x.Lane == exchange.Unmatched {
				refused = append(refused, x.Lane)
			}
		}
		if len(refused) != 2 || !strings.HasPrefix(refused[0], "tools tools/call ") || refused[1] != exchange.Unmatched {
			c.t.Errorf("refused on the tape: %q", refused)
		}
	})
}

// A scripted peer: what a client sends and gets byte by byte.
func (g *webRig) post(body string, header ...string) (status int, h http.Header, got string) {
	g.t.Helper()
	return g.do(http.MethodPost, "/mcp", body, append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
}

// open sends a request and reads the head of its answer.
func (g *webRig) open(method, path, body string, header ...string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequest(method, "http://"+webHost+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := g.client().Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	return res
}

func (g *webRig) do(method, path, body string, header ...string) (status int, h http.Header, got string) {
	g.t.Helper()
	res := g.open(method, path, body, header...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Error(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// A batch is answered with the ids of this run, in JSON and in events.
func TestBatchOverHTTP(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{true, false} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !asJSON {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: message\r\ndata: [{\"jsonrpc\":\"2.0\",\"id\":\"b\",\r\ndata: \"result\":{\"b\":1}}]\r\n\r\n"+
					": a comment\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"id\":1}}\n\n")
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `[{"jsonrpc":"2.0","id":"b","result":{"b":1}}, {"jsonrpc":"2.0","id":1,"result":{"id":1}}]`)
		})
		g := recordWeb(t, h)
		_, _, want := g.post(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":"b","method":"prompts/list"}]`)
		want = strings.NewReplacer(`"id":1,`, `"id":"longer",`, `"id":"b"`, `"id":77`).Replace(want)
		g.replay(func(again *webRig) {
			_, _, got := again.post(`[{"jsonrpc":"2.0","id":"longer","method":"tools/list"},{"jsonrpc":"2.0","id":77,"method":"prompts/list"}]`)
			if got != want {
				again.t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			again.faithful()
			if calls := strings.Join(again.calls(), "\n"); strings.Count(calls, " true") != 2 {
				again.t.Errorf("calls:\n%s", calls)
			}
		})
	}
}

// Where ids are the same, the answer passes chunk by chunk as it came, and its tape holds the recorded bytes in any case.
func TestChunksStay(t *testing.T) {
	t.Parallel()
	chunks := []string{"data: {\"jsonrpc\":\"2.0\",", "\"id\":1,\"resu", "lt\":{}}\n\n: end\n\n"}
	read := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			io.WriteString(w, c)
			w.(http.Flusher).Flush()
			<-read // else two of them are one read
		}
	})
	g := recordWeb(t, h)
	body := g.open(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Accept", "application/json, text/event-stream").Body
	for range chunks {
		if _, err := body.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		read <- struct{}{}
	}
	_, _ = io.ReadAll(body) // what ends it
	body.Close()
	for _, id := range []string{"1", "22"} {
		g.replay(func(again *webRig) {
			if _, _, got := again.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`); got != strings.Replace(strings.Join(chunks, ""), `"id":1`, `"id":`+id, 1) {
				again.t.Errorf("got %q", got)
			}
			again.end()
			was, now := g.exchange(), again.exchange()
			if was.Response.Hash != now.Response.Hash || len(was.Stream) != 3 || len(now.Stream) != 3 {
				again.t.Errorf("the tape of the replay holds %d chunks of %q", len(now.Stream), now.Response.Text)
			}
		})
	}
}

// exchange is the first one of the tape.
func (g *webRig) exchange() *tape.Exchange {
	for _, r := range g.records() {
		if x := tape.ExchangeOf(r.Kind); x != nil {
			return x
		}
	}
	g.t.Fatal("no exchange")
	return nil
}

// What is not MCP's is what it was: JSON-RPC of others, and events of others.
func TestOthersStayPlain(t *testing.T) {
	t.Parallel()
	var once sync.Once
	begun := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"id\":1}\n\ndata: x")
			once.Do(func() { close(begun) })
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`)
	})
	bodies := []string{
		`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"rootUri":null,"capabilities":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}`,
		`{"method":"tools/list","id":1}`,
	}
	run := func(g *webRig) (seen []string) {
		for _, b := range bodies {
			_, _, got := g.do(http.MethodPost, "/rpc", b, "Content-Type", "application/json", "Accept", "application/json")
			seen = append(seen, got)
		}
		_, _, got := g.do(http.MethodGet, "/events", "", "Accept", "text/event-stream")
		return append(seen, got)
	}
	g := replayed(t, h, run)
	<-begun
	for _, r := range g.records() {
		x := tape.ExchangeOf(r.Kind)
		if x == nil || x.Lane != "http:"+webHost {
			t.Errorf("recorded %s", tape.AppendRecord(nil, r))
		}
	}
	g.replay(func(again *webRig) {
		status, _, _ := again.do(http.MethodPost, "/rpc", strings.Replace(bodies[0], `"id":1`, `"id":2`, 1))
		if status != exchange.RefusedStatus {
			again.t.Errorf("another id of another protocol got %d", status)
		}
	})
}

// What is asked without a session belongs to the conversation that was recorded with its URL, on the tape or not: whatever came first.
func TestRefusedWithoutSession(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	call := func(k string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"k":"` + k + `"}}}`
	}
	for _, begin := range []string{"", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"CLIENT"}}}`} {
		g := recordWeb(t, h)
		say := func(g *webRig, client string, bodies ...string) {
			if begin != "" {
				g.post(strings.Replace(begin, "CLIENT", client, 1))
			}
			for _, b := range bodies {
				g.post(b)
			}
		}
		say(g, "a", call("1"), call("2"))
		for _, client := range []string{"a", "b"} {
			for _, other := range [][]string{{"x", "2"}, {"1", "x"}} {
				g.replay(func(again *webRig) {
					say(again, client, call(other[0]), call(other[1]))
					again.end()
					for _, line := range again.calls() {
						if !strings.HasPrefix(line, "1 http://mcp.example.com/mcp client ") {
							again.t.Errorf("client %s, calls %q: %s", client, other, line)
						}
					}
				})
			}
		}
	}
}

// TestEqualCallsSideBySide: of two equal calls side by side each gets what was answered to the one with its id, whichever comes first, and
// whichever was answered first; of a client that has counted further by then, to the one in its place.
func TestEqualCallsSideBySide(t *testing.T) {
	t.Parallel()
	for answered := 2; answered <= 3; answered++ {
		for shift := range 2 {
			t.Run(fmt.Sprint(answered, shift), func(t *testing.T) { t.Parallel(); equalCalls(t, answered, shift) })
		}
	}
}

// toolCall is a call of a tool with an id.
func toolCall(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

// equalCalls makes two calls, 2 and 3, of which the one with the id answered is answered first.
func equalCalls(t *testing.T, answered, shift int) {
	here, over := []chan struct{}{2: make(chan struct{}), 3: make(chan struct{})}, make(chan struct{})
	g := recordWeb(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		id := 1
		for !strings.Contains(string(b), fmt.Sprintf(`"id":%d`, id)) {
			id++
		}
		if id > 1 {
			close(here[id])
			<-here[3]
			if id != answered {
				<-over
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"was %d"}]}}`, id, id)
	}))
	g.post(toolCall(1, "look"))
	var both sync.WaitGroup
	post := func(id int) {
		g.post(toolCall(id, "roll"))
		if id == answered {
			close(over)
		}
	}
	both.Go(func() { post(2) })
	<-here[2]
	post(3)
	both.Wait()
	g.replay(func(again *webRig) {
		again.post(toolCall(1+shift, "look"))
		var both sync.WaitGroup
		both.Go(func() {
			if _, _, got := again.post(toolCall(3+shift, "roll")); !strings.Contains(got, "was 3") {
				t.Errorf("the second call got %s", got)
			}
		})
		synctest.Wait()
		if _, _, got := again.post(toolCall(2+shift, "roll")); !strings.Contains(got, "was 2") {
			t.Errorf("the first call got %s", got)
		}
		both.Wait()
	})
}

// TestPollsKeepTheirOrder: equal calls one after another are answered in their order, whatever ids they have.
func TestPollsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	n := 0
	g := recordWeb(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"was %d"}]}}`, n)
	}))
	for id := range 3 {
		g.post(toolCall(1+id, "poll"))
	}
	g.replay(func(again *webRig) {
		for id := range 3 {
			if _, _, got := again.post(toolCall(2+id, "poll")); !strings.Contains(got, fmt.Sprintf("was %d", 1+id)) {
				t.Errorf("poll %d got %s", 1+id, got)
			}
		}
	})
}
