package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func saidCall(provider, endpoint string) *tape.LLMCall {
	return &tape.LLMCall{Provider: provider, Endpoint: endpoint, Exchange: tape.Exchange{Status: 200}}
}

// listen reads a call that must be readable.
func listen(t *testing.T, l *Listener, call *tape.LLMCall, request, response string) *Said {
	t.Helper()
	s, err := l.Read(call, []byte(request), []byte(response))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSaidOfEventStreams reads the binary streams of Bedrock.
func TestSaidOfEventStreams(t *testing.T) {
	var converse, invoke []byte
	for _, e := range [][2]string{
		{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Let me."}}}`},
		{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}`},
		{"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"I "}}`}, {"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"look."}}`},
		{"contentBlockStart", `{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"u1","name":"read"}}}`},
		{"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"p\""}}}`}, {"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":":1}"}}}`},
		{"messageStop", `{"stopReason":"tool_use"}`}, {"metadata", `{"usage":{}}`},
	} {
		converse = append(converse, eventMessage(e[0], e[1])...)
	}
	for _, e := range []string{
		`{"type":"message_start","message":{"content":[]}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"I look."}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"u1","name":"read","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\":1}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
	} {
		invoke = append(invoke, invokeChunk(e)...)
	}
	for endpoint, body := range map[string][]byte{"converse-stream": converse, "invoke-with-response-stream": invoke} {
		s := listen(t, new(Listener), saidCall("bedrock", endpoint), `{"anthropic_version":"v","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, string(body))
		got, _ := json.Marshal(s.Answer)
		want := `"Message":{"role":"assistant","content":"I look.","tool_calls":[{"id":"u1","name":"read","arguments":{"p":1}}]},"Reasoning":"Let me."`
		if !strings.Contains(string(got), want) || !s.Answer.Whole || len(s.Answer.Native) != 1 {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}

// TestListenerReadsWhatIsNew holds that a history is read once, and that marks which move in it are no news that is lost.
func TestListenerReadsWhatIsNew(t *testing.T) {
	call := saidCall("anthropic", "messages")
	var l Listener
	turn := func(n int, mark string) string {
		var b strings.Builder
		b.WriteString(`{"model":"m","system":"Be brief.","messages":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read","input":{}}]},`, i)
			}
			m := ""
			if i == n-1 {
				m = mark
			}
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%d"%s}]}`, i, i, m)
		}
		b.WriteString(`],"tools":[{"name":"read"}]}`)
		return b.String()
	}
	for n := 1; n < 20; n++ {
		s := listen(t, &l, call, turn(n, ""), "")
		if n > 1 && s.Known != s.Messages-2 || s.Messages != 2*n-1 || !s.Tools || s.System != "Be brief." {
			t.Errorf("turn %d: %d of %d messages known, tools %v, system %q", n, s.Known, s.Messages, s.Tools, s.System)
		}
		if last := s.New[len(s.New)-1].Results; len(last) != 1 || last[0].CallID != fmt.Sprintf("t%d", n-1) {
			t.Errorf("turn %d: %v", n, last)
		}
	}
	s := listen(t, &l, call, turn(19, ""), "")
	if s.Known != s.Messages || len(s.New) != 0 || !s.Tools || s.System == "" {
		t.Errorf("the same again: %+v", s)
	}
	marked := listen(t, &l, call, turn(20, `,"cache_control":{}`), "")
	moved := listen(t, &l, call, turn(21, `,"cache_control":{}`), "")
	if marked.Known != 37 || moved.Known != 38 || len(moved.New) != 3 {
		t.Errorf("%d and %d known, %d new", marked.Known, moved.Known, len(moved.New))
	}
	if s := listen(t, &l, call, `{"model":"m","messages":[{"role":"user","content":"a summary"}]}`, ""); s.Known != 0 || s.Messages != 1 || s.System != "" || s.Tools {
		t.Errorf("after a compaction: %+v", s)
	}
}

// TestListenerHoldsAgainstWholeReading compares reading a conversation in one go with reading it alone, over histories that change.
func TestListenerHoldsAgainstWholeReading(t *testing.T) {
	call := saidCall("openai", "chat.completions")
	requests := []string{
		`{"messages":[]}`, `{"messages":[1]}`, `{"messages":[12]}`, `{"messages":[12,{"role":"user","content":"a"}]}`,
		`{"messages":[{"role":"user","content":"a"}],"x":1}`, `{"messages":[{"role":"user","content":"a"} , {"role":"user","content":"ab"}],"x":12}`,
		` {"x":12,"messages": [{"role":"user","content":"a"},{"role":"user","content":"ab"}]}`, `{"messages":"lone"}`, `{"messages":"lone"}`,
		`{"messages":"lone2","tools":[{}]}`, `{"tools":[{}],"messages":[{"role":"user","content":"a"}]}`, `{"tools":[],"messages":[{"role":"user","content":"a"}]}`,
		`{"messages":[{"role":"user","content":"a"}`, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[],"messages":[]}`, `{}`,
	}
	for _, first := range requests {
		for _, second := range requests {
			var l Listener
			_, _ = l.Read(call, []byte(first), nil)
			got, err := l.Read(call, []byte(second), nil)
			want, errWhole := ReadCall(call, []byte(second), nil)
			if (err == nil) != (errWhole == nil) {
				t.Fatalf("%s after %s: %v, alone %v", second, first, err, errWhole)
			}
			if err == nil && (got.Messages != want.Messages || got.Tools != want.Tools || len(got.New) > len(want.New)) {
				t.Errorf("%s after %s: %+v, alone %+v", second, first, got, want)
			}
		}
	}
}

// TestCallsWithoutIDs follows calls without ids through a conversation, whatever the program calls them in its history.
func TestCallsWithoutIDs(t *testing.T) {
	const answer = `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"functionCall":{"name":"read","args":{"n":%d}}},{"functionCall":{"name":"read","args":{"n":%d}}}]}}]}`
	turn := func(ids bool, n int) string {
		b := `{"contents":[{"role":"user","parts":[{"text":"hi"}]}`
		for i := range n {
			id := [2]string{}
			if ids {
				id = [2]string{fmt.Sprintf(`"id":"own%d",`, 2*i), fmt.Sprintf(`"id":"own%d",`, 2*i+1)}
			}
			b += fmt.Sprintf(`,{"role":"model","parts":[{"functionCall":{%s"name":"read","args":{}}},{"functionCall":{%s"name":"read","args":{}}}]}`, id[0], id[1])
			b += fmt.Sprintf(`,{"role":"user","parts":[{"functionResponse":{%s"name":"read","response":{"output":"%d"}}},{"functionResponse":{%s"name":"read","response":{"output":"%d"}}}]}`,
				id[1], 2*i+1, id[0], 2*i)
		}
		return b + "]}"
	}
	for _, ids := range []bool{true, false} {
		var l Listener
		var calls, results []string
		for n := range 4 {
			s := listen(t, &l, saidCall("gemini", "generateContent"), turn(ids, n), fmt.Sprintf(answer, 2*n, 2*n+1))
			for _, m := range s.New {
				for _, r := range m.Results {
					results = append(results, r.CallID+string(r.Output))
				}
			}
			for _, c := range s.Answer.Message.ToolCalls {
				calls = append(calls, c.ID)
			}
		}
		if want := []string{"call_1", "call_2", "call_3", "call_4", "call_5", "call_6", "call_7", "call_8"}; !slices.Equal(calls, want) {
			t.Errorf("calls %v", calls)
		}
		want := []string{`call_2"1"`, `call_1"0"`, `call_4"3"`, `call_3"2"`, `call_6"5"`, `call_5"4"`} // by the ids that the program made up
		if !ids {
			want = []string{`call_1"1"`, `call_2"0"`, `call_3"3"`, `call_4"2"`, `call_5"5"`, `call_6"4"`} // by name and order
		}
		if !slices.Equal(results, want) {
			t.Errorf("ids %v: results %v", ids, results)
		}
	}
}

// TestSaidOfPackedBodies reads bodies with a Content-Encoding, one of them cut.
func TestSaidOfPackedBodies(t *testing.T) {
	pack := func(s string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Flush()
		flushed := b.Len()
		_ = w.Close()
		if strings.Contains(s, "cut") {
			return b.Bytes()[:flushed]
		}
		return b.Bytes()
	}
	call := saidCall("openai", "chat.completions")
	call.RequestHeaders = []tape.HeaderField{{Name: "content-encoding", Value: "gzip"}}
	call.ResponseHeaders = []tape.HeaderField{{Name: "Content-Encoding", Value: "gzip"}}
	request := pack(`{"messages":[{"role":"user","content":"hi"}]}`)
	s, err := new(Listener).Read(call, request, pack(`{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`))
	if err != nil || string(s.Answer.Message.Content) != `"Hello"` || s.New[0].Texts[0] != "hi" {
		t.Fatalf("%+v, %v", s, err)
	}
	torn := pack("data: {\"choices\":[{\"delta\":{\"content\":\"cut\"}}]}\n\n")
	if _, err := new(Listener).Read(call, request, torn); err == nil {
		t.Error("an answer that does not unpack was read")
	}
	call.Error = "reset"
	if s, err := new(Listener).Read(call, request, torn); err != nil || string(s.Answer.Message.Content) != `"cut"` || s.Answer.Whole {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestNoTalk: calls of no conversation, and calls that failed.
func TestNoTalk(t *testing.T) {
	for _, call := range []*tape.LLMCall{saidCall("openai", "embeddings"), saidCall("", ""), saidCall("bedrock", "count-tokens"), saidCall("bedrock", "invoke")} {
		if _, err := ReadCall(call, []byte(`{"input":"x"}`), nil); !errors.Is(err, ErrNoTalk) {
			t.Errorf("%s %s: %v", call.Provider, call.Endpoint, err)
		}
	}
	call := saidCall("openai", "chat.completions")
	call.Status = 500
	s := listen(t, new(Listener), call, `{"messages":[{"role":"user","content":"hi"}]}`, `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`)
	if s.Answer != nil || len(s.New) != 1 {
		t.Errorf("%+v", s)
	}
}

// FuzzSaid: nothing panics, and whatever comes out is JSON on one line.
func FuzzSaid(f *testing.F) {
	endpoints := [][2]string{
		{"anthropic", "messages"}, {"openai", "chat.completions"}, {"openai", "responses"}, {"openai", "completions"}, {"gemini", "streamGenerateContent"},
		{"ollama", "chat"}, {"ollama", "generate"}, {"cohere", "chat"}, {"bedrock", "converse-stream"}, {"bedrock", "invoke"},
	}
	for i := range endpoints {
		f.Add(byte(i), []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"toolResult":{}}]},{"role":"tool","tool_calls":[{"function":{"arguments":"{"}}]}],"contents":[{"parts":[{"functionCall":{}}]}],"prompt":"p","input":[{"call_id":"c","type":"x_call"}]}`),
			[]byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}},"choices":[{"message":{"content":[{}],"tool_calls":[{}]}}],"output":[{"type":"x_call","call_id":"c"}],"candidates":[{"content":{"parts":[{},{"functionCall":{}}]}}],"message":{"tool_calls":{}},"delta":{"toolUse":{}}}`))
		f.Add(byte(i), []byte("{\"prompt\":\"a\\ud800\",\"messages\":[\n]}"), []byte("data: {\"delta\":{\"text\":\"\xff\"},\n \"response\":{\n}}\n\n[{}]"))
	}
	f.Fuzz(func(t *testing.T, which byte, request, response []byte) {
		e := endpoints[int(which)%len(endpoints)]
		var l Listener
		for range 2 {
			s, err := l.Read(saidCall(e[0], e[1]), request, response)
			if err != nil {
				continue
			}
			oneLineEach(t, s)
		}
	})
}

func oneLineEach(t *testing.T, s *Said) {
	check := func(b []byte) {
		if !json.Valid(b) || bytes.Contains(b, []byte("\n")) {
			t.Errorf("no JSON on one line: %q", b)
		}
	}
	for _, m := range s.New {
		for _, c := range m.Calls {
			check(c.Arguments)
		}
		for _, r := range m.Results {
			check(r.Output)
		}
		for _, a := range m.Attachments {
			check(a)
		}
	}
	if s.Answer != nil {
		check(s.Answer.Message.Content)
		for _, c := range s.Answer.Message.ToolCalls {
			check(c.Arguments)
		}
		for _, b := range s.Answer.Native {
			check(b)
		}
	}
}
