package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const realtimeURL = "wss://api.openai.com/v1/realtime?model=gpt-realtime"

// passes sends and receives messages that begin no turn and belong to none; one that begins with ">" is the program's.
func (w *wire) passes(messages ...string) {
	w.t.Helper()
	for _, m := range messages {
		read := w.turns.Server
		if sent, ok := strings.CutPrefix(m, ">"); ok {
			m, read = sent, w.turns.Client
		}
		if got := read(exchange.TextMessage, []byte(m)); got.Part != exchange.TurnOutside {
			w.t.Fatalf("%s is %+v", m, got)
		}
	}
}

// realtimeAnswer are the events of an answer that says a text.
func realtimeAnswer(id, text string) []string {
	item := fmt.Sprintf(`{"id":"item_%s","type":"message","role":"assistant","content":[{"type":"output_audio","transcript":%q}]}`, id, text)
	return []string{
		`{"type":"response.created","response":{"id":"` + id + `","output":[]}}`,
		`{"type":"response.output_item.added","response_id":"` + id + `","item":{"id":"item_` + id + `","type":"message","role":"assistant"}}`,
		`{"type":"response.output_audio.delta","response_id":"` + id + `","delta":"` + strings.Repeat("A", 999) + `"}`,
		`{"type":"response.output_item.done","response_id":"` + id + `","item":` + item + `}`,
		`{"type":"response.done","response":{"id":"` + id + `","status":"completed","output":[` + item + `],
			"usage":{"total_tokens":12,"input_tokens":7,"output_tokens":5,"input_token_details":{"cached_tokens":4}}}}`,
	}
}

// realtimeRun plays two turns of a session, as one run names things, and returns their keys and the last request.
func realtimeRun(t *testing.T, run, prompt string) (keys []exchange.Key, last *exchange.Request) {
	t.Helper()
	w := opened(t, realtimeURL)
	w.passes(
		`{"type":"session.created","session":{"id":"sess_1","instructions":"the default"}}`,
		`>{"type":"session.update","event_id":"e`+run+`","session":{"type":"realtime","instructions":"Be brief.","audio":{"output":{"voice":"marin"}}}}`,
		`{"type":"session.updated"}`,
		`>{"type":"session.update","session":{"audio":{"output":{"speed":1.5}}}}`,
		`>{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"`+prompt+`"}]}}`,
		`{"type":"conversation.item.added","item":{"id":"item_u1","type":"message","role":"user"}}`,
	)
	turn, id := w.asks(`{"type":"response.create","event_id":"f` + run + `"}`)
	keys = append(keys, id.Key)
	w.hears(turn.Of, realtimeAnswer("resp_1", "hello")...)
	w.passes(
		`{"type":"conversation.item.done","item":{"id":"item_resp_1","type":"message","role":"assistant"}}`,
		`{"type":"rate_limits.updated"}`,
		`>{"type":"conversation.item.create","previous_item_id":"item_u1","item":{"type":"function_call_output","call_id":"call_9","output":"ok"}}`,
		`>{"type":"input_audio_buffer.append","audio":"`+strings.Repeat("UklG", 500)+`"}`,
		`>{"type":"input_audio_buffer.commit"}`,
	)
	turn, id = w.asks(`{"type":"response.create","response":{"instructions":"Now at length."}}`)
	return append(keys, id.Key), turn.Request
}

// TestRealtimeTurns holds the turns of two runs to equal keys, and what was said before to count.
func TestRealtimeTurns(t *testing.T) {
	first, last := realtimeRun(t, "1", "hi")
	second, _ := realtimeRun(t, "2", "hi")
	other, _ := realtimeRun(t, "3", "ho")
	for i := range first {
		if first[i] != second[i] || first[i] == other[i] {
			t.Errorf("turn %d: %+v, %+v, of another prompt %+v", i, first[i], second[i], other[i])
		}
	}
	call := &tape.LLMCall{Provider: "openai", Usage: []byte(`{"input_tokens":7,"output_tokens":5,"input_token_details":{"cached_tokens":4}}`)}
	if u, ok := llm.UsageOf(call); !ok || u.CacheReadTokens != 4 || u.OutputTokens != 5 {
		t.Errorf("used %+v", u)
	}
	if k := first[0]; k.Provider != "openai" || k.Endpoint != "realtime" || k.Model != "gpt-realtime" {
		t.Errorf("key %+v", k)
	}
	said, err := new(llm.Listener).Read(&tape.LLMCall{Provider: "openai", Endpoint: "realtime", Exchange: tape.Exchange{Status: 101}},
		last.Body, []byte(strings.Join(realtimeAnswer("resp_2", "bye"), "\n")))
	if err != nil || said.System != "Now at length." || said.Messages != 4 || said.Answer == nil || said.Answer.ID != "resp_2" ||
		!said.Answer.Whole || string(said.Answer.Message.Content) != `"bye"` {
		t.Fatalf("said %+v, %v\n%s", said, err, last.Body)
	}
	roles := ""
	for _, m := range said.New {
		roles += m.Role + " "
	}
	if roles != "user tool assistant user " || said.New[2].Texts[0] != "hello" {
		t.Errorf("heard %+v", said.New)
	}
	if strings.Contains(string(last.Body), "UklGUklG") || !strings.Contains(string(last.Body), " of 2000 bytes") {
		t.Errorf("the sound stands in %s", last.Body)
	}
}

// TestRealtimeBeside: answers of two turns side by side, an answer that the server begins, and errors.
func TestRealtimeBeside(t *testing.T) {
	w := opened(t, realtimeURL)
	a, _ := w.asks(`{"type":"response.create","event_id":"a"}`)
	b, id := w.asks(`{"type":"response.create","event_id":"b","response":{"conversation":"none","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"aside"}]}]}}`)
	if !strings.Contains(string(id.Surface), "aside") {
		t.Errorf("surface %s", id.Surface)
	}
	for _, m := range []struct {
		text string
		of   uint64
		part exchange.TurnPart
	}{
		{`{"type":"response.created","response":{"id":"r1"}}`, a.Of, exchange.TurnWithin},
		{`{"type":"response.created","response":{"id":"r2"}}`, b.Of, exchange.TurnWithin},
		{`{"type":"response.output_text.delta","response_id":"r2","delta":"x"}`, b.Of, exchange.TurnWithin},
		{`{"type":"rate_limits.updated"}`, 0, exchange.TurnOutside},
		{`{"type":"error","error":{"event_id":"zzz"}}`, 0, exchange.TurnOutside},
		{`{"type":"response.done","response":{"id":"r2","output":[{"id":"i2","type":"message","role":"assistant","content":[]}]}}`, b.Of, exchange.TurnEnds},
		{`{"type":"response.done","response":{"id":"r1","output":[]}}`, a.Of, exchange.TurnEnds},
	} {
		if got := w.turns.Server(exchange.TextMessage, []byte(m.text)); got.Of != m.of || got.Part != m.part {
			t.Errorf("%s is %+v, want %d of %d", m.text, got, m.part, m.of)
		}
	}
	w.passes(`>{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.speech_stopped"}`,
		`{"type":"input_audio_buffer.committed","item_id":"item_v"}`)
	own := w.turns.Server(exchange.TextMessage, []byte(`{"type":"response.created","response":{"id":"r3"}}`))
	if own.Part != exchange.TurnBegins {
		t.Fatalf("an answer of the server's own is %+v", own)
	}
	if id := w.identity(own); !strings.Contains(string(id.Surface), "input_audio") || strings.Contains(string(id.Surface), "aside") {
		t.Errorf("it asks %s", id.Surface)
	}
	w.hears(own.Of, `{"type":"response.done","response":{"id":"r3"}}`)
	c, _ := w.asks(`{"type":"response.create","event_id":"c"}`)
	w.passes(`{"type":"error","error":{"event_id":"zzz"}}`, `{"type":"session.updated"}`)
	w.hears(c.Of, `{"type":"error","error":{"event_id":"c"}}`)
	if refused := string(c.Refuse("why")); !strings.Contains(refused, `"type":"error"`) || !strings.Contains(refused, `"message":"why"`) {
		t.Errorf("refused with %s", refused)
	}
}

// TestRealtimeItems: items are deleted, and stand where they were put.
func TestRealtimeItems(t *testing.T) {
	w := opened(t, realtimeURL)
	item := func(after, id, text string) string {
		return fmt.Sprintf(`>{"type":"conversation.item.create","previous_item_id":%q,"item":{"id":%q,"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, after, id, text)
	}
	w.passes(item("", "a", "1"), item("", "b", "2"), item("a", "c", "3"), item("root", "d", "4"),
		`>{"type":"conversation.item.delete","item_id":"b"}`)
	_, id := w.asks(`{"type":"response.create"}`)
	var order []string
	for _, part := range strings.Split(string(id.Surface), `"text":"`)[1:] {
		order = append(order, part[:1])
	}
	if got := strings.Join(order, ""); got != "413" {
		t.Errorf("the items stand as %s", got)
	}
}

// TestRealtimeAnswersWithoutEnd has a server begin answers and end none: the first of them are turns, and the others messages as any.
func TestRealtimeAnswersWithoutEnd(t *testing.T) {
	w := opened(t, realtimeURL)
	begun := 0
	for i := range 10_000 {
		m := fmt.Sprintf(`{"type":"response.created","response":{"id":"r%d"}}`, i)
		if w.turns.Server(exchange.TextMessage, []byte(m)).Part == exchange.TurnBegins {
			begun++
		}
	}
	if begun == 0 || begun > 1000 {
		t.Errorf("%d turns are under way", begun)
	}
}
