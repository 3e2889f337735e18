package testbench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// A wire is how one provider is asked the same thing: to be brief, what the weather is, with a tool for it.
type wire struct {
	name          string
	url, body     string // STREAM stands for the value of stream
	streamURL     string // "" for url
	text          string // what the whole answer has of "Sunny today"
	deltas        []string
	stop          string // what either form has
	call          string // of a tool call
	failure       string // of status 529
	wholeType     string
	streamType    string
	streamLastHas string
}

const question = "What is the weather?"

var wires = []wire{
	{
		name: "anthropic", url: "https://api.anthropic.com/v1/messages",
		body: `{"model":"claude-x","max_tokens":100,"stream":STREAM,"system":"Be brief.","messages":[{"role":"user","content":"` + question + `"}],
			"tools":[{"name":"look","description":"d","input_schema":{"type":"object"}}]}`,
		text: `"text":"Sunny today"`, deltas: []string{`"text":"Sunny"`, `"text":" today"`}, stop: `"stop_reason":"max_tokens"`,
		call: `{"id":"call_7","input":{"at":"here"},"name":"look","type":"tool_use"}`, failure: `"type":"overloaded_error"`,
		wholeType: "application/json", streamType: "text/event-stream; charset=utf-8", streamLastHas: "message_stop",
	},
	{
		name: "chat", url: "https://api.openai.com/v1/chat/completions",
		body: `{"model":"gpt-x","stream":STREAM,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + question + `"}],
			"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}}]}`,
		text: `"content":"Sunny today"`, deltas: []string{`"content":"Sunny"`, `"content":" today"`}, stop: `"finish_reason":"length"`,
		call: `{"function":{"arguments":"{\"at\":\"here\"}","name":"look"},"id":"call_7","type":"function"}`, failure: `"type":"server_error"`,
		wholeType: "application/json", streamType: "text/event-stream; charset=utf-8", streamLastHas: "[DONE]",
	},
	{
		name: "responses", url: "https://gateway.example/openai/v1/responses",
		body: `{"model":"gpt-x","stream":STREAM,"instructions":"Be brief.","input":"` + question + `",
			"tools":[{"type":"function","name":"look","description":"d","parameters":{"type":"object"}}]}`,
		text: `"text":"Sunny today"`, deltas: []string{`"delta":"Sunny"`, `"delta":" today"`}, stop: `"reason":"max_output_tokens"`,
		call: `"arguments":"{\"at\":\"here\"}","call_id":"call_7"`, failure: `"type":"server_error"`,
		wholeType: "application/json", streamType: "text/event-stream; charset=utf-8", streamLastHas: "response.incomplete",
	},
	{
		name: "gemini", url: "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent",
		streamURL: "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
		body: `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"` + question + `"}]}],
			"tools":[{"functionDeclarations":[{"name":"look","description":"d","parametersJsonSchema":{"type":"object"}}]}]}`,
		text: `"text":"Sunny today"`, deltas: []string{`"text":"Sunny"`, `"text":" today"`}, stop: `"finishReason":"MAX_TOKENS"`,
		call: `{"functionCall":{"args":{"at":"here"},"id":"call_7","name":"look"}}`, failure: `"status":"INTERNAL"`,
		wholeType: "application/json", streamType: "text/event-stream", streamLastHas: "MAX_TOKENS",
	},
	{
		name: "azure", url: "https://one.openai.azure.com/openai/deployments/gpt-x/chat/completions?api-version=1",
		body: `{"stream":STREAM,"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"` + question + `"}]}],
			"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}}]}`,
		text: `"content":"Sunny today"`, deltas: []string{`"content":"Sunny"`, `"content":" today"`}, stop: `"finish_reason":"length"`,
		call: `{"function":{"arguments":"{\"at\":\"here\"}","name":"look"},"id":"call_7","type":"function"}`, failure: `"type":"server_error"`,
		wholeType: "application/json", streamType: "text/event-stream; charset=utf-8", streamLastHas: "[DONE]",
	},
	{
		name: "converse", url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x/converse",
		streamURL: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x/converse-stream",
		body: `{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"` + question + `"}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"look","description":"d","inputSchema":{"json":{"type":"object"}}}}]}}`,
		text: `"text":"Sunny today"`, deltas: []string{`"text":"Sunny"`, `"text":" today"`}, stop: `"stopReason":"max_tokens"`,
		call: `{"toolUse":{"input":{"at":"here"},"name":"look","toolUseId":"call_7"}}`, failure: `"__type":"InternalServerException"`,
		wholeType: "application/json", streamType: "application/vnd.amazon.eventstream", streamLastHas: `"totalTokens":46`,
	},
	{
		name: "invoke", url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x/invoke",
		streamURL: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x/invoke-with-response-stream",
		body: `{"anthropic_version":"bedrock-2023-05-31","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":"` + question + `"}],
			"tools":[{"name":"look","description":"d","input_schema":{"type":"object"}}]}`,
		text: `"text":"Sunny today"`, stop: `"stop_reason":"max_tokens"`,
		call: `{"id":"call_7","input":{"at":"here"},"name":"look","type":"tool_use"}`, failure: `"__type":"InternalServerException"`,
		wholeType: "application/json", streamType: "application/vnd.amazon.eventstream", streamLastHas: ``,
	},
	{
		name: "ollama", url: "http://localhost:11434/api/chat",
		body: `{"model":"llama","stream":STREAM,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + question + `"}],
			"tools":[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}}]}`,
		text: `"content":"Sunny today"`, deltas: []string{`"content":"Sunny"`, `"content":" today"`}, stop: `"done_reason":"length"`,
		call: `{"function":{"arguments":{"at":"here"},"index":0,"name":"look"}}`, failure: `"error":"overloaded, really"`,
		wholeType: "application/json", streamType: "application/x-ndjson", streamLastHas: `"done":true`,
	},
}

// neutral is the same in the form of llm.complete.
func neutral() *fixture.Request {
	return &fixture.Request{
		System: "Be brief.", Messages: question,
		Tools: []any{map[string]any{"name": "look", "description": "d", "input_schema": map[string]any{"type": "object"}}},
	}
}

var weather = []fixture.Rule{
	{
		Match: fixture.Match{Contains: "weather"}, Times: 2,
		Response: &fixture.Response{StopReason: "max_tokens", Usage: fixture.Usage{InputTokens: 12, OutputTokens: 34}},
		Stream:   []fixture.Piece{{Text: "Sunny", DelayMS: 20}, {Text: " today", DelayMS: 30}},
	},
	{Match: fixture.Match{Any: true}, Response: &fixture.Response{ToolCalls: []fixture.ToolCall{{ID: "call_7", Name: "look", Arguments: []byte(`{"at":"here"}`)}}}},
	{Match: fixture.Match{Any: true}, Error: &fixture.ModelError{Status: 529, Message: "overloaded, really"}},
}

// ask posts a request of the wire.
func (w *wire) ask(t *testing.T, b *testbench.Bench, stream bool) (*http.Response, string) {
	t.Helper()
	url, value := w.url, "false"
	if stream {
		value = "true"
		if w.streamURL != "" {
			url = w.streamURL
		}
	}
	res, err := b.Client().Post(url, "application/json", strings.NewReader(strings.Replace(w.body, "STREAM", value, 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(got)
}

// converse asks all that weather answers, and returns what came.
func (w *wire) converse(t *testing.T, b *testbench.Bench) (said []string) {
	t.Helper()
	for _, stream := range []bool{true, false, false, false} {
		res, got := w.ask(t, b, stream)
		said = append(said, res.Status+"\n"+res.Header.Get("Content-Type")+"\n"+got)
	}
	return said
}

// TestModelWire answers each provider's wire format from rules: the answers hold what a client looks for, the records are those
// that llm.complete would make, and a replay gives the same bytes.
func TestModelWire(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.tape")
			b := testbench.New(t, &testbench.Config{LLM: testbench.LLM{Rules: weather}, Emit: path})
			began := b.Clock().Now()
			said := w.converse(t, b)
			if took := b.Clock().Now().Sub(began); took != 100*time.Millisecond {
				t.Errorf("two answers of 50 ms took %s", took)
			}
			w.check(t, said)
			records, err := b.Records()
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			for _, r := range records {
				if k, ok := r.Kind.(*tape.LLMCall); ok {
					calls++
					if k.RequestDigest != neutral().Digest() {
						surface, err := neutral().Surface()
						t.Errorf("record %d is of %s, llm.complete's would be of %s, %v", r.Seq, k.RequestPayload.Text, surface, err)
					}
				}
			}
			if calls != 4 {
				t.Errorf("%d calls recorded", calls)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			again := testbench.NewReplay(t, path, nil)
			again.Clock().Now()
			if diff := cmp.Diff(said, w.converse(t, again)); diff != "" {
				t.Errorf("replay (-recorded +replayed):\n%s", diff)
			}
			again.Clock().Now()
			if r, err := again.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func (w *wire) check(t *testing.T, said []string) {
	t.Helper()
	stream, whole, call, failed := said[0], said[1], said[2], said[3]
	wants := []string{w.streamType}
	if w.deltas != nil { // else they are in base64
		wants = append(append(wants, w.stop), w.deltas...)
	}
	for _, want := range wants {
		if !strings.Contains(stream, want) {
			t.Errorf("stream has no %s:\n%s", want, stream)
		}
	}
	if events := strings.Split(strings.TrimSpace(stream), "\n"); !strings.Contains(events[len(events)-1], w.streamLastHas) {
		t.Errorf("the stream ends in %s", events[len(events)-1])
	}
	for _, want := range []string{w.wholeType, w.text, w.stop, "12", "34"} {
		if !strings.Contains(whole, want) {
			t.Errorf("whole answer has no %s:\n%s", want, whole)
		}
	}
	if !strings.Contains(call, w.call) {
		t.Errorf("want %s in\n%s", w.call, call)
	}
	if !strings.HasPrefix(failed, "529 ") || !strings.Contains(failed, "overloaded, really") || !strings.Contains(failed, w.failure) {
		t.Errorf("failure: %s", failed)
	}
}

// TestModelWireNoRule gives a call that no rule answers a status that no SDK tries again, with the rule to paste; the test fails.
func TestModelWireNoRule(t *testing.T) {
	f := newFakeT(t)
	f.run(func() {
		b := testbench.New(f, &testbench.Config{LLM: testbench.LLM{Rules: []fixture.Rule{}}})
		res, got := wires[0].ask(t, b, false)
		if res.StatusCode != http.StatusBadRequest || res.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %v", res.Status, res.Header)
		}
		var answer struct{ Error struct{ Message string } }
		if err := json.Unmarshal([]byte(got), &answer); err != nil || !strings.Contains(answer.Error.Message, `{"match":{"digest":"`) {
			t.Errorf("%s, %v", got, err)
		}
		var none *fixture.NoRuleError
		if !errors.As(b.Refused(), &none) {
			t.Errorf("%v", b.Refused())
		}
	})
	if said := f.end(); !strings.Contains(said, "no rule answers call 1") {
		t.Errorf("the test said %q", said)
	}
}

// TestModelWireDenied names the ways to answer a model where nothing is given; other requests are denied as such.
func TestModelWireDenied(t *testing.T) {
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, got := wires[1].ask(t, b, false); !strings.Contains(got, "--llm FIXTURE.jsonl") {
		t.Errorf("%s", got)
	}
	if _, err := b.Client().Post("https://h.example/v1/things", "application/json", strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "allow=h.example") {
		t.Errorf("%v", err)
	}
}

// TestModelWireMalformed answers a request that its provider would not take as the provider does: no rule is used up, and the run
// has nothing to complain of.
func TestModelWireMalformed(t *testing.T) {
	b := testbench.New(t, &testbench.Config{Unused: true, LLM: testbench.LLM{Rules: weather}})
	for _, body := range []string{`{"model":"claude-x","max_tokens":1,"messages":[]}`, `{"model":"m","messages":[{"role":"user","content":7}]}`} {
		res, err := b.Client().Post(wires[0].url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Log(body)
			t.Error(err)
			continue
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(got), "invalid_request_error") {
			t.Errorf("%s: %s %s, %v", body, res.Status, got, err)
		}
	}
	if n := b.Recorder().Count(); n != 0 || b.Refused() != nil {
		t.Errorf("%d records, %v", n, b.Refused())
	}
}

// TestModelWireOff leaves calls of models to the network where that alone is given, and a replay of its tape too.
func TestModelWireOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{Emit: path, Net: testbench.Net{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"from":"the network"}`)), ContentLength: -1}, nil
	})}})
	_, said := wires[0].ask(t, b, false)
	if !strings.Contains(said, "from") {
		t.Errorf("got %s", said)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := testbench.NewReplay(t, path, nil)
	if _, got := wires[0].ask(t, again, false); got != said {
		t.Errorf("replay: %s", got)
	}
	if r, err := again.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestModelWireIDs makes ids up of the request: an additional call changes no other's.
func TestModelWireIDs(t *testing.T) {
	ids := func(before bool) string {
		b := testbench.New(t, &testbench.Config{Unused: true, LLM: testbench.LLM{Rules: []fixture.Rule{
			{Match: fixture.Match{Any: true}, Times: 3, Response: &fixture.Response{Text: "ok"}},
		}}})
		if before {
			if _, err := b.Client().Post(wires[0].url, "", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"other"}]}`)); err != nil {
				t.Fatal(err)
			}
		}
		_, one := wires[0].ask(t, b, false)
		_, two := wires[0].ask(t, b, false)
		if one == two {
			t.Error("two answers have one id")
		}
		return one + two
	}
	if diff := cmp.Diff(ids(false), ids(true)); diff != "" {
		t.Error(diff)
	}
}

// TestModelWireCancelled gives a program its context's error, and a compressed request its answer.
func TestModelWireCancelled(t *testing.T) {
	b := testbench.New(t, &testbench.Config{Unused: true, LLM: testbench.LLM{Rules: weather}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, wires[0].url, bytes.NewReader([]byte(`{"model":"m","messages":[{"role":"user","content":"weather"}]}`)))
	if _, err := b.HTTP().RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := b.Recorder().Count(); n != 0 {
		t.Errorf("%d records", n)
	}
}

// streaming asks for the stream of weather's first rule, and gives each Read of it to got with the time on the run's clock; false
// closes the answer.
func streaming(t *testing.T, b *testbench.Bench, ctx context.Context, got func(text string, at time.Duration) bool) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, wires[0].url, strings.NewReader(strings.Replace(wires[0].body, "STREAM", "true", 1)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.Client().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		_, ms := b.Clock().Stamp()
		if n > 0 && !got(string(buf[:n]), time.Duration(ms)*time.Millisecond) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// slowly runs body on a bench whose model takes 20 ms to its first word and 30 to the next, then replays it: the tapes are the same.
func slowly(t *testing.T, body func(b *testbench.Bench)) (records []*tape.Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{LLM: testbench.LLM{Rules: weather[:1]}, Emit: path, Unused: true})
	body(b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := b.Records()
	if err != nil {
		t.Fatal(err)
	}
	again := testbench.NewReplay(t, path, nil)
	body(again)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := again.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
		t.Errorf("replay: %+v, %v", r.Divergences, err)
	}
	return records
}

// TestModelWireTimes has each piece come at its time, and the record stand before what the program does with the last one.
func TestModelWireTimes(t *testing.T) {
	records := slowly(t, func(b *testbench.Bench) {
		at := make(map[string]time.Duration)
		err := streaming(t, b, t.Context(), func(text string, now time.Duration) bool {
			for _, word := range []string{"message_start", `"Sunny"`, `" today"`, "message_stop"} {
				if strings.Contains(text, word) {
					at[word] = now
				}
			}
			if strings.Contains(text, "message_stop") {
				b.Clock().Now()
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]time.Duration{"message_start": 0, `"Sunny"`: 20 * time.Millisecond, `" today"`: 50 * time.Millisecond, "message_stop": 50 * time.Millisecond}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	})
	if len(records) != 2 || records[0].Kind.Name() != "llm_call" || records[0].MonotonicMS != 50 {
		t.Errorf("%+v", records)
	}
}

// TestModelWireEnded has a program end an answer early: by closing it, by a deadline of the run's clock before the first word, by one
// between two, by never closing it. A replay ends it so too.
func TestModelWireEnded(t *testing.T) {
	all := func(string, time.Duration) bool { return true }
	for name, c := range map[string]struct {
		body  func(t *testing.T, b *testbench.Bench)
		error string
		at    int64
	}{
		"closed": {func(t *testing.T, b *testbench.Bench) {
			if err := streaming(t, b, t.Context(), func(text string, _ time.Duration) bool { return !strings.Contains(text, "Sunny") }); err != nil {
				t.Error(err)
			}
		}, tape.Cancelled, 20},
		"deadline before": {func(t *testing.T, b *testbench.Bench) {
			ctx, cancel := b.Clock().WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := streaming(t, b, ctx, all); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}, exchange.DeadlinePassed, 10},
		"deadline between": {func(t *testing.T, b *testbench.Bench) {
			ctx, cancel := b.Clock().WithTimeout(t.Context(), 40*time.Millisecond)
			defer cancel()
			seen := ""
			err := streaming(t, b, ctx, func(text string, _ time.Duration) bool { seen += text; return true })
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(seen, "Sunny") || strings.Contains(seen, "today") {
				t.Error(seen, err)
			}
		}, exchange.DeadlinePassed, 40},
		"left open": {func(t *testing.T, b *testbench.Bench) {
			req, _ := http.NewRequest(http.MethodPost, wires[0].url, strings.NewReader(strings.Replace(wires[0].body, "STREAM", "true", 1)))
			if _, err := b.Client().Do(req); err != nil {
				t.Error(err)
			}
		}, tape.Cancelled, 0},
		"no stream": {func(t *testing.T, b *testbench.Bench) {
			ctx, cancel := b.Clock().WithTimeout(t.Context(), 40*time.Millisecond)
			defer cancel()
			if _, err := b.Model().Complete(ctx, neutral()); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}, exchange.DeadlinePassed, 40},
	} {
		t.Run(name, func(t *testing.T) {
			records := slowly(t, func(b *testbench.Bench) { c.body(t, b) })
			if len(records) != 1 {
				t.Fatalf("%d records", len(records))
			}
			if k := records[0].Kind.(*tape.LLMCall); k.Error != c.error || records[0].MonotonicMS != c.at || !strings.Contains(k.Response.Text, "Sunny today") {
				t.Errorf("at %d ms: %+v", records[0].MonotonicMS, k)
			}
		})
	}
}
