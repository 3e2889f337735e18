package tapeview

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// endless is a store whose blobs have no end, and which says how much of them was read.
type endless struct {
	cas.Store
	read int
}

func (e *endless) Open(cas.Digest) (io.ReadCloser, error) { return io.NopCloser(e), nil }

func (e *endless) Read(p []byte) (int, error) {
	const head = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`
	n := copy(p, strings.Repeat("x", len(p)))
	if e.read == 0 {
		copy(p, head)
	}
	e.read += n
	if e.read > 1<<20 {
		return 0, errors.New("read on and on")
	}
	return n, nil
}

// TestALongAnswerIsNotReadWhole: a line about 20 MB takes the first of them.
func TestALongAnswerIsNotReadWhole(t *testing.T) {
	store := new(endless)
	say := sayer{max: 60, store: store}
	got := say.record(&tape.MCPJSONRPC{
		Method: "tools/call", Request: &tape.Payload{Inline: true, Text: `{"params":{"name":"big"}}`},
		Response: &tape.Payload{Hash: cas.Sum(nil), Len: 20 << 20}, LatencyMS: 7,
	})
	if len(got.lines) != 2 || got.lines[0] != "→ tools/call big" || !strings.HasPrefix(got.lines[1], `← "xxxx`) ||
		!strings.HasSuffix(got.lines[1], `…" 20 MB, 7 ms`) {
		t.Errorf("%q", got.lines)
	}
	if store.read > 2*mcptext.Shown {
		t.Errorf("%d bytes were read", store.read)
	}
}

// TestRowsOnATerminal: lines about messages fit, progress is dim, and of a failure the line that says so is red.
func TestRowsOnATerminal(t *testing.T) {
	r := New(nil, &Options{Cols: 80, Colour: true})
	payload := func(s string) *tape.Payload { return &tape.Payload{Inline: true, Text: s, Len: int64(len(s))} }
	show := func(k tape.Kind) []string {
		var out strings.Builder
		if err := r.Write(&out, &tape.Record{Seq: 1, Kind: k}, "mcp:files"); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	long := strings.Repeat("word ", 100)
	lines := show(&tape.MCPJSONRPC{
		Method: "tools/call", Request: payload(fmt.Sprintf(`{"params":{"name":"say","arguments":{"text":%q}}}`, long)),
		Response: payload(fmt.Sprintf(`{"result":{"content":[{"text":%q}],"isError":true}}`, long)),
	})
	if len(lines) != 2 || strings.Contains(lines[0], styleRed) || !strings.Contains(lines[1], styleRed+"← failed: \"word") {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		said := line[strings.LastIndexByte(line, '\t')+1:]
		if n := utf8.RuneCountInString(strings.NewReplacer(styleRed, "", styleEnd, "").Replace(said)); n > 80-35 {
			t.Errorf("%d columns: %s", n, said)
		}
	}
	lines = show(&tape.MCPJSONRPC{Method: "notifications/progress", From: "server", Request: payload(`{"params":{"progress":1}}`)})
	if len(lines) != 1 || !strings.HasSuffix(lines[0], styleDim+"← notifications/progress 1"+styleEnd) {
		t.Errorf("%q", lines)
	}
	// What others wrote steers no terminal, whatever field it stands in.
	for _, k := range []tape.Kind{
		&tape.MCPJSONRPC{Method: "\x1b[2J", Request: payload(""), Error: "\u009b2J"},
		&tape.MCPOpen{Program: "\x1b", Args: []string{"\u009b"}, Protocol: "\x1b"},
		&tape.MCPText{Payload: payload("\x1b\u009b")},
		&tape.MCPClose{Signal: "\x1b", Error: "\u009b"},
		&tape.WSOpen{URL: "\x1b"},
		&tape.WSMessage{Direction: "\x1b", Opcode: "\x1b", Payload: payload("{\"type\":\"\u009b\"}")},
		&tape.WSClose{Reason: "\x1b"},
	} {
		for _, line := range show(k) {
			line = strings.NewReplacer(styleRed, "", styleDim, "", styleEnd, "").Replace(line)
			if strings.ContainsAny(line, "\x1b\u009b") {
				t.Errorf("%T: %q", k, line)
			}
		}
	}
}

// TestARecordOfAConversationInOneLine: where a line stands alone it says both halves.
func TestARecordOfAConversationInOneLine(t *testing.T) {
	k := &tape.MCPJSONRPC{Method: "ping", Request: &tape.Payload{Inline: true}, Response: &tape.Payload{Inline: true, Text: `{"result":{}}`, Len: 13}}
	if got := Line(k); got != "→ ping  ← {} 0 ms" {
		t.Error(got)
	}
}

func inline(text string) *tape.Payload {
	return &tape.Payload{Hash: cas.Sum([]byte(text)), Text: text, Inline: true, Len: int64(len(text))}
}

// TestModel says what a testbench's model was asked and answered.
func TestModel(t *testing.T) {
	const asked = `{"messages":[{"content":"What changed?","role":"user"},{"content":"","role":"assistant","tool_calls":` +
		`[{"arguments":{},"id":"call_1","name":"git"}]},{"content":"a log","role":"tool","tool_call_id":"call_1"}]}`
	for _, tc := range []struct {
		request, response, want string
	}{
		{asked, `{"text":"I look.","tool_calls":[{"id":"c","name":"git","arguments":{"n":2}}],"usage":{"input_tokens":1,"output_tokens":2},"stop_reason":null}`,
			`→ m "What changed?"  ← "I look." git {n: 2}`},
		{asked, `{"text":"","tool_calls":[],"stop_reason":null}`, `→ m "What changed?"  ← ""`},
		{asked, `{"error":{"status":529,"message":"busy"}}`, `→ m "What changed?"  ← the model answered status 529: busy`},
		{"", `{"text":"one"}`, `m request 000000000000  ← "one"`},
	} {
		k := &tape.LLMCall{Model: "m", Exchange: tape.Exchange{Response: inline(tc.response)}}
		if tc.request != "" {
			k.RequestPayload = inline(tc.request)
		}
		if got := Line(k); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
	lost := &tape.LLMCall{Model: "m", Exchange: tape.Exchange{Response: tape.PayloadOf(cas.Sum([]byte("x")), 1)}}
	if got := Line(lost); got != "m request 000000000000" {
		t.Errorf("a call whose answer is not there shows as %s", got)
	}
}
