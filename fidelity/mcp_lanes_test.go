package fidelity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// asks is a call that a client made at place arrival and that was answered at place answered. Its id is its place: what is
// compared is params and result.
func asks(server, method string, arrival, answered uint64, params, result string) *tape.MCPJSONRPC {
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, arrival, method, params)
	response := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, arrival, result)
	return &tape.MCPJSONRPC{
		Server: server, Method: method, RequestDigest: sum(request), ResponseDigest: sum(response), LatencyMS: int64(answered),
		Request: inline(request), Response: inline(response), Conversation: 1, Transport: "stdio", Arrival: arrival,
		Answered: answered, ParamsDigest: sum(params), ResultDigest: sum(result),
	}
}

// tool is a call of a tool that answers with text.
func tool(arrival uint64, name, arguments, text string) *tape.MCPJSONRPC {
	return asks("files", "tools/call", arrival, arrival+1, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments),
		fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

// tells is a notification.
func tells(from, method string, arrival uint64, params string) *tape.MCPJSONRPC {
	k := asks("files", method, arrival, 0, params, "")
	k.From, k.LatencyMS, k.Response, k.ResponseDigest = from, 0, inline(""), sum("")
	k.ResultDigest = [32]byte{}
	return k
}

// unanswered is a call that was cut.
func unanswered(k *tape.MCPJSONRPC, why string) *tape.MCPJSONRPC {
	k.Response, k.ResponseDigest, k.Answered, k.Error = inline(""), sum(""), 0, why
	k.ResultDigest = [32]byte{}
	return k
}

// notOnTape is a call of a replay that the recorder answered itself.
func notOnTape(k *tape.MCPJSONRPC) *tape.MCPJSONRPC {
	said := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"nothing recorded"}}`
	k.Response, k.ResponseDigest, k.ResultDigest = inline(said), sum(said), sum("error")
	k.Error = "nothing was recorded for it"
	return k
}

// opened begins the conversation with a server, closed ends it.
func opened(server string) *tape.MCPOpen {
	return &tape.MCPOpen{Server: server, Conversation: 1, Transport: "stdio", Program: "/usr/bin/node", Args: []string{"s.js"}, Protocol: "2025-06-18"}
}

func closed(code int64, signal string) *tape.MCPClose {
	return &tape.MCPClose{Server: "files", Conversation: 1, Arrival: 20, ExitCode: &code, Signal: signal}
}

// text is what came beside the messages.
func text(from string, arrival uint64, s string) *tape.MCPText {
	return &tape.MCPText{Server: "files", Conversation: 1, From: from, Arrival: arrival, Payload: inline(s)}
}

func TestMCPLanes(t *testing.T) {
	type kinds = []tape.Kind
	const files = "mcp:files"
	read := func(arrival uint64, path string) *tape.MCPJSONRPC {
		return tool(arrival, "read_file", fmt.Sprintf(`{"path":%q}`, path), "text of "+path)
	}
	slow := func(k *tape.MCPJSONRPC) *tape.MCPJSONRPC { k.LatencyMS += 1000; return k }
	sampled := func(arrival uint64, answer string) *tape.MCPJSONRPC {
		k := asks("files", "sampling/createMessage", arrival, arrival+1, `{"messages":[]}`, answer)
		k.From = "server"
		return k
	}
	tests := []struct {
		name          string
		a, b          kinds
		want          []code
		message       string // of the first divergence
		refused, left int    // entries of the two lists
		notes         int
	}{
		{
			name: "the same, slower",
			a:    kinds{opened("files"), read(1, "a"), closed(0, "")},
			b:    kinds{opened("files"), slow(read(1, "a")), closed(0, "")},
		},
		{
			name: "answers in another order, ids and all",
			a:    kinds{opened("files"), read(1, "a"), read(2, "b"), read(3, "c")},
			b:    kinds{opened("files"), read(3, "c"), read(1, "a"), read(2, "b")},
		},
		{
			name:  "asked in another order at once",
			a:     kinds{opened("files"), read(1, "a"), read(2, "b"), read(3, "c")},
			b:     kinds{opened("files"), read(1, "c"), read(2, "a"), read(3, "b")},
			notes: 1,
		},
		{
			name:    "a changed argument",
			a:       kinds{opened("files"), read(1, "a"), read(2, "b"), read(3, "c")},
			b:       kinds{opened("files"), read(1, "a"), tool(2, "read_file", `{"path":"x"}`, "text of b"), read(3, "c")},
			want:    []code{{files, MCPRequestDigest}},
			message: `tools/call read_file: arguments.path: "b" → "x"`,
		},
		{
			name:    "a changed result",
			a:       kinds{opened("files"), read(1, "a"), tool(2, "read_file", `{"path":"b"}`, "one\ntwo\nthree")},
			b:       kinds{opened("files"), read(1, "a"), tool(2, "read_file", `{"path":"b"}`, "one\n2\nthree")},
			want:    []code{{files, MCPResponseDigest}},
			message: `tools/call read_file, the answer: content[0].text, line 2: "one\ntwo\nthree" → "one\n2\nthree"`,
		},
		{
			name: "a changed structured result, and an argument more",
			a: kinds{opened("files"), asks("files", "tools/call", 1, 2, `{"name":"sum","arguments":{"n":[1,2]}}`,
				`{"content":[],"structuredContent":{"sum":3}}`)},
			b: kinds{opened("files"), asks("files", "tools/call", 1, 2, `{"name":"sum","arguments":{"n":[1,2],"round":true}}`,
				`{"content":[],"structuredContent":{"sum":4}}`)},
			want:    []code{{files, MCPRequestDigest}, {files, MCPResponseDigest}},
			message: `tools/call sum: arguments.round added: true`,
		},
		{
			name:    "a call more",
			a:       kinds{opened("files"), read(1, "a"), read(3, "b"), read(5, "c"), closed(0, "")},
			b:       kinds{opened("files"), read(1, "a"), tool(3, "list", `{}`, "a b c"), read(5, "b"), read(7, "c"), closed(0, "")},
			want:    []code{{files, MissingInRecorded}},
			message: "in the replay and not recorded: mcp_json_rpc files tools/call list",
		},
		{
			name:    "a call less",
			a:       kinds{opened("files"), read(1, "a"), read(3, "b"), read(5, "c")},
			b:       kinds{opened("files"), read(1, "a"), read(5, "c")},
			want:    []code{{files, MissingInReplay}},
			message: "recorded and never asked for: tools/call read_file of files",
			left:    1,
		},
		{
			name:  "equal calls with other answers, in another order",
			a:     kinds{opened("files"), tool(1, "now", "{}", "one"), tool(2, "now", "{}", "two")},
			b:     kinds{opened("files"), tool(1, "now", "{}", "two"), tool(2, "now", "{}", "one")},
			notes: 1,
		},
		{
			name: "a refused call in the place of a recorded one",
			a:    kinds{opened("files"), read(1, "a"), read(3, "b")},
			b:    kinds{opened("files"), read(1, "a"), notOnTape(read(3, "x"))},
			want: []code{{files, MCPRequestDigest}}, refused: 1, left: 1,
			message: `tools/call read_file: arguments.path: "b" → "x"`,
		},
		{
			name: "a refused call that nothing recorded is like, asked again",
			a:    kinds{opened("files"), read(1, "a")},
			b:    kinds{opened("files"), read(1, "a"), notOnTape(read(3, "x")), notOnTape(read(5, "x"))},
			want: []code{{files, MissingInRecorded}, {files, MissingInRecorded}}, refused: 2,
			message: "asked for and not recorded: tools/call read_file of files",
		},
		{
			name: "notifications pair by place",
			a: kinds{
				opened("files"), tells("server", "notifications/progress", 2, `{"progress":1}`),
				tells("server", "notifications/progress", 3, `{"progress":2}`), read(1, "a"),
			},
			b: kinds{
				opened("files"), tells("server", "notifications/progress", 2, `{"progress":1}`),
				tells("server", "notifications/progress", 3, `{"progress":5}`), read(1, "a"),
			},
			want:    []code{{files, MCPRequestDigest}},
			message: "notifications/progress: progress: 2 → 5",
		},
		{
			name:    "a server that asks, and is told otherwise",
			a:       kinds{opened("files"), sampled(2, `{"role":"assistant"}`)},
			b:       kinds{opened("files"), sampled(2, `{"role":"user"}`)},
			want:    []code{{files, MCPResponseDigest}},
			message: `sampling/createMessage, the answer: role: "assistant" → "user"`,
		},
		{
			name: "a call that was cut says nothing of its answer",
			a:    kinds{opened("files"), unanswered(read(1, "a"), "cancelled")},
			b:    kinds{opened("files"), read(1, "a")},
		},
		{
			name: "a call that the server never answered",
			a:    kinds{opened("files"), read(1, "a")},
			b:    kinds{opened("files"), unanswered(read(1, "a"), "server ended")},
			want: []code{{files, MCPResponseDigest}, {files, MCPError}},
		},
		{
			name:    "another end",
			a:       kinds{opened("files"), read(1, "a"), closed(0, "")},
			b:       kinds{opened("files"), read(1, "a"), closed(137, "SIGKILL")},
			want:    []code{{files, "mcp_close_exit_code"}, {files, "mcp_close_signal"}},
			message: "the server's exit code changed: recorded 0, replay 137 (files)",
		},
		{
			name: "logs on stdout count, numbers of four digits do not, nor does stderr",
			a:    kinds{opened("files"), text("server", 1, "ready at 12345"), text("server", 2, "open"), text("stderr", 2, "warn")},
			b:    kinds{opened("files"), text("server", 1, "ready at 54321"), text("server", 2, "shut"), text("stderr", 2, "error")},
			want: []code{{files, "mcp_text_hash"}}, notes: 1,
			message: `text of server: line 1: "open" → "shut"`,
		},
		{
			name: "stderr in other pieces, with another time",
			a:    kinds{opened("files"), text("stderr", 0, "one 12345\n"), text("stderr", 0, "two\n")},
			b:    kinds{opened("files"), text("stderr", 0, "one 54321\ntwo\n")},
		},
		{
			name: "a server that was never started",
			a:    kinds{opened("files"), read(1, "a"), read(3, "b"), closed(0, "")},
			b:    kinds{},
			want: []code{{files, MissingInReplay}}, left: 2,
			message: "recorded and not in the replay: mcp_open files, and 3 records more of that conversation",
		},
		{
			name: "two servers of one name, told of in another order",
			a: kinds{
				startedWith("files", "one"), read(1, "a"), startedWith("files#2", "two"), numbered(read(1, "b"), "files#2"),
			},
			b: kinds{
				startedWith("files", "two"), read(1, "b"), startedWith("files#2", "one"), numbered(read(1, "a"), "files#2"),
			},
		},
		{
			name: "another argument of a server",
			a:    kinds{startedWith("files", "one"), read(1, "a")},
			b:    kinds{startedWith("files", "two"), read(1, "a")},
			want: []code{{files, "mcp_open_args"}},
		},
		{
			name: "another argument comes before the name that the server gives itself then",
			a:    kinds{startedWith("files", "one")},
			b:    kinds{startedWith("files2", "two")},
			want: []code{{files, "mcp_open_args"}, {files, MCPOpenServer}},
		},
		{
			name: "a server that calls itself otherwise is one divergence",
			a:    kinds{opened("files"), read(1, "a"), read(2, "b")},
			b:    kinds{opened("files2"), numbered(read(1, "a"), "files2"), numbered(read(2, "b"), "files2")},
			want: []code{{files, MCPOpenServer}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compareLanes(t, Semantic, tt.a, tt.b, nil)
			if d := cmp.Diff(tt.want, codes(r)); d != "" {
				t.Fatalf("-want +got\n%s\n%v", d, r.Divergences)
			}
			if tt.message != "" && r.Divergences[0].Message != tt.message {
				t.Errorf("%s, want\n%s", r.Divergences[0].Message, tt.message)
			}
			if len(r.Refused) != tt.refused || len(r.Unasked) != tt.left || len(r.Notes) != tt.notes {
				t.Errorf("refused %v, unasked %v, notes %q", r.Refused, r.Unasked, r.Notes)
			}
			for _, ref := range append(r.Refused, r.Unasked...) {
				if ref.Method != "tools/call" || ref.URL != files || ref.Seq == nil || ref.Lane != files {
					t.Errorf("%+v", ref)
				}
			}
			if o := compareLanes(t, Outcome, tt.a, tt.b, nil); len(o.Divergences) > 0 {
				t.Errorf("outcome: %v", o.Divergences)
			}
		})
	}
}

// numbered is a call of another server.
func numbered(k *tape.MCPJSONRPC, server string) *tape.MCPJSONRPC { k.Server = server; return k }

// startedWith begins the conversation with a server that has one more argument.
func startedWith(server, arg string) *tape.MCPOpen {
	k := opened(server)
	k.Args = append(k.Args, arg)
	return k
}

// TestMCPMasksHide: what masks take out of calls that compare as equal is told.
func TestMCPMasksHide(t *testing.T) {
	wait := func(id uint64, at string) *tape.MCPJSONRPC {
		k := tool(id, "wait", fmt.Sprintf(`{"until":%q}`, at), "ok")
		k.ParamsDigest = sum("masked")
		return k
	}
	a := []tape.Kind{wait(1, "12345"), text("server", 2, "at 1111\n")}
	r := compareLanes(t, Semantic, a, []tape.Kind{wait(1, "54321"), text("server", 2, "at 2222\n")}, nil)
	want := []string{"mcp:files, n arguments.until: 12345 → 54321", "mcp:files, n text: 1111 → 2222"}
	if d := cmp.Diff(want, maskedLines(r)); d != "" || len(r.Divergences) > 0 {
		t.Errorf("-want +got\n%s\n%v", d, r.Divergences)
	}
	again := wait(1, "12345") // another id alone is nothing that a mask hides
	again.Request = inline(strings.Replace(again.Request.Text, `"id":1`, `"id":7`, 1))
	again.RequestDigest = again.Request.Hash
	if r := compareLanes(t, Semantic, a[:1], []tape.Kind{again}, nil); len(r.MaskedPairs) > 0 {
		t.Errorf("%q", r.Notes)
	}
}

// TestMCPLatencyGatesByteByByte: between lanes too.
func TestMCPLatencyGatesByteByByte(t *testing.T) {
	a, b := tool(1, "now", "{}", "x"), tool(1, "now", "{}", "x")
	b.LatencyMS++
	r := compareLanes(t, ByteIdentical, []tape.Kind{a}, []tape.Kind{b}, nil)
	if d := cmp.Diff([]code{{"mcp:files", MCPLatency}}, codes(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestMCPCarriers: the exchanges that carried messages are not compared beside them, one that carried none is.
func TestMCPCarriers(t *testing.T) {
	post := func(arrival uint64, answer string, status int) *tape.HTTPExchange {
		x := get("https://tools.test/mcp", arrival, status)
		x.Method, x.Lane, x.Response = "POST", "mcp:files", inline(answer)
		return x
	}
	carried := func(arrival uint64) *tape.MCPJSONRPC {
		k := tool(arrival, "now", "{}", "x")
		k.Exchange, k.AnswerExchange = arrival, arrival
		return k
	}
	a := []tape.Kind{carried(1), post(1, `{"id":1}`, 200), post(2, "", 404)}
	b := []tape.Kind{post(1, `{"id":7}`, 200), carried(1), post(2, "", 404)}
	if r := compareLanes(t, Semantic, a, b, nil); len(r.Divergences) > 0 {
		t.Errorf("%v", r.Divergences)
	}
	stream, end, ping := post(5, "", 200), post(6, "", 204), carried(7)
	stream.Method, end.Method, ping.Method = "GET", "DELETE", "ping"
	for _, one := range []tape.Kind{stream, end, ping} {
		for _, sides := range [][2][]tape.Kind{{a, append(b[:3:3], one)}, {append(a[:3:3], one), b}} {
			if r := compareLanes(t, Semantic, sides[0], sides[1], nil); len(r.Divergences) > 0 {
				t.Errorf("%T on one side: %v", one, r.Divergences)
			}
		}
	}
	refused := post(3, "no", 200) // its message tells of it
	refused.Lane = laneUnmatched
	call := notOnTape(carried(5))
	call.Exchange, call.AnswerExchange = 3, 3
	r := compareLanes(t, Semantic, a, append(b[:3:3], call, refused), nil)
	if len(r.Divergences) != 1 || len(r.Refused) != 1 || r.Refused[0].URL != "mcp:files" {
		t.Errorf("%v, refused %v", r.Divergences, r.Refused)
	}
	b[2] = post(2, "", 405)
	if d := cmp.Diff([]code{{"mcp:files", "http_status"}}, codes(compareLanes(t, Semantic, a, b, nil))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]code{{"mcp:files", HTTPResponseHash}, {"mcp:files", "http_status"}}, codes(compareLanes(t, ByteIdentical, a, b, nil))); d != "" {
		t.Errorf("byte by byte: -want +got\n%s", d)
	}
}

// TestMCPManyOutOfOrder: a lane of many calls at once compares whatever order they were asked and answered in.
func TestMCPManyOutOfOrder(t *testing.T) {
	a, b := []tape.Kind{opened("files")}, []tape.Kind{opened("files")}
	const n = 32
	tool := func(arrival uint64, name, arguments, text string) *tape.MCPJSONRPC {
		k := tool(arrival, name, arguments, text)
		k.Answered = arrival + n
		return k
	}
	for i := range uint64(n) {
		a = append(a, tool(i+1, "echo", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprint(i)))
		j := (i*7 + 3) % n
		b = append(b, tool((i*5)%n+1, "echo", fmt.Sprintf(`{"n":%d}`, j), fmt.Sprint(j)))
	}
	if r := compareLanes(t, Semantic, a, b, nil); len(r.Divergences) > 0 {
		t.Errorf("%v", r.Divergences)
	}
}

// TestMCPSpilledRequest: a request that does not stand in its record is explained where its bytes can be had.
func TestMCPSpilledRequest(t *testing.T) {
	long := strings.Repeat("x", 5000)
	body := map[string]string{}
	spill := func(k *tape.MCPJSONRPC) *tape.MCPJSONRPC {
		body[k.Request.Hash.String()] = k.Request.Text
		k.Request = &tape.Payload{Hash: k.Request.Hash, Len: k.Request.Len}
		return k
	}
	a := spill(tool(1, "write_file", fmt.Sprintf(`{"content":%q,"path":"a"}`, long), "ok"))
	b := spill(tool(1, "write_file", fmt.Sprintf(`{"content":%q,"path":"b"}`, long), "ok"))
	r := compareLanes(t, Semantic, []tape.Kind{a}, []tape.Kind{b}, &LaneOptions{
		Payload: func(p *tape.Payload, _ Side) ([]byte, error) { return []byte(body[p.Hash.String()]), nil },
	})
	if len(r.Divergences) != 1 || r.Divergences[0].Message != `tools/call write_file: arguments.path: "a" → "b"` {
		t.Errorf("%v", r.Divergences)
	}
}

// TestMCPOrder: a call that had its answer before the next was made cannot come behind that, unless somebody asked at once.
func TestMCPOrder(t *testing.T) {
	calls := func(at ...uint64) []tape.Kind {
		out := []tape.Kind{opened("files")}
		for i, n := range at {
			k := tool(n, "echo", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprint(i))
			if len(at) > 2 { // at once
				k.Answered = n + 5
			}
			out = append(out, k)
		}
		return out
	}
	for name, tt := range map[string]struct {
		was, now []tape.Kind
		want     []code
	}{
		"the same":      {calls(1, 3), calls(1, 3), nil},
		"another order": {calls(1, 3), calls(3, 1), []code{{"mcp:files", MCPOrder}}},
		"at once":       {calls(1, 2, 3), calls(3, 2, 1), nil},
	} {
		if d := cmp.Diff(tt.want, codes(compareLanes(t, Semantic, tt.was, tt.now, nil)), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}
