package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

const responsesSocketURL = "wss://api.openai.com/v1/responses"

// A wire is one socket whose messages are read as they pass.
type wire struct {
	t     *testing.T
	c     *llm.Classifier
	turns exchange.Turns
}

func opened(t *testing.T, url string) *wire {
	t.Helper()
	c := llm.NewClassifier(nil)
	w := &wire{t, c, c.Sockets(&exchange.Request{Method: http.MethodGet, URL: url})}
	if w.turns == nil {
		t.Fatalf("nothing is known of %s", url)
	}
	return w
}

// asks sends what begins a turn, and returns that with its identity.
func (w *wire) asks(message string) (exchange.Turn, *exchange.Identity) {
	w.t.Helper()
	turn := w.turns.Client(exchange.TextMessage, []byte(message))
	if turn.Part != exchange.TurnBegins || turn.Of == 0 || turn.Request == nil {
		w.t.Fatalf("%s is %+v", message, turn)
	}
	return turn, w.identity(turn)
}

func (w *wire) identity(turn exchange.Turn) *exchange.Identity {
	w.t.Helper()
	id, err := w.c.Classify(turn.Request)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// hears receives messages, which are all to be of one turn; the last of them alone is to end it.
func (w *wire) hears(of uint64, messages ...string) {
	w.t.Helper()
	for i, m := range messages {
		want := exchange.Turn{Part: exchange.TurnWithin, Of: of}
		if i == len(messages)-1 {
			want.Part = exchange.TurnEnds
		}
		if got := w.turns.Server(exchange.TextMessage, []byte(m)); got.Part != want.Part || got.Of != want.Of {
			w.t.Fatalf("%s is %+v, want %+v", m, got, want)
		}
	}
}

// answered are the events of an answer.
func answered(id string, items ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"output":[]}}`, id)}
	for _, item := range items {
		out = append(out, `{"type":"response.output_item.done","item":`+item+`}`)
	}
	return append(out, fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"output":[%s],"usage":{"input_tokens":7,"output_tokens":3}}}`,
		id, strings.Join(items, ",")))
}

const (
	codexHead = `"type":"response.create","model":"gpt-5-codex","stream":true,"tools":[{"type":"function","name":"exec_command"}],` +
		`"tool_choice":"auto","store":false,"prompt_cache_key":%[1]q,"client_metadata":{"a":%[1]q,"turn_id":""},`
	codexBase   = `{"type":"message","id":"msg_%s","role":"developer","content":[{"type":"input_text","text":"You are Codex."}]}`
	codexPrompt = `{"type":"message","id":"msg_%[1]s","role":"user","content":[{"type":"input_text","text":"write hello.txt"}],` +
		`"internal_chat_message_metadata_passthrough":{"turn_id":"%[1]s","create_time":1795375844.2173822,"content_item_kinds":["user.text"]}}`
	codexCall   = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"exec_command","arguments":"{}"}`
	codexEcho   = `{"type":"function_call","call_id":"call_1","name":"exec_command","arguments":"{}"}`
	codexResult = `{"type":"function_call_output","id":"fco_%s","call_id":"call_1","output":"ok"}`
)

// codexTurns plays the three messages of a codex that calls one tool, as one of its runs names things. It returns their keys and the
// last request.
func codexTurns(t *testing.T, run string) (keys []exchange.Key, last *exchange.Request) {
	t.Helper()
	head := "{" + fmt.Sprintf(codexHead, run)
	w := opened(t, responsesSocketURL)
	warm, id := w.asks(head + `"generate":false,"input":[` + fmt.Sprintf(codexBase, run) + `]}`)
	keys = append(keys, id.Key)
	w.hears(warm.Of, answered("resp_0")...)
	turn, id := w.asks(head + `"previous_response_id":"resp_0","input":[` + fmt.Sprintf(codexPrompt, run) + `]}`)
	keys = append(keys, id.Key)
	w.hears(turn.Of, answered("resp_1", codexCall)...)
	turn, id = w.asks(head + `"previous_response_id":"resp_1","input":[` + fmt.Sprintf(codexResult, run) + `]}`)
	keys = append(keys, id.Key)
	w.hears(turn.Of, answered("resp_2")...)
	return keys, turn.Request
}

// TestWarmUpBeforeToolServers has a socket warm up before and after its tool servers are ready: it is the same warm-up, and the same
// turn after it, which goes on from the one and says everything anew after the other.
func TestWarmUpBeforeToolServers(t *testing.T) {
	head := "{" + fmt.Sprintf(codexHead, "x")
	early := strings.Replace(head, `{"type":"function","name":"exec_command"}`, "", 1)
	base, prompt := fmt.Sprintf(codexBase, "x"), fmt.Sprintf(codexPrompt, "x")
	var keys [2][2]exchange.Key
	for i, first := range []string{early, head} {
		w := opened(t, responsesSocketURL)
		warm, id := w.asks(first + `"generate":false,"input":[` + base + `]}`)
		keys[i][0] = id.Key
		w.hears(warm.Of, answered("resp_0")...)
		turn := head + `"previous_response_id":"resp_0","input":[` + prompt + `]}`
		if first == early {
			turn = head + `"input":[` + base + "," + prompt + `]}`
		}
		_, id = w.asks(turn)
		keys[i][1] = id.Key
	}
	if keys[0] != keys[1] {
		t.Errorf("before: %+v\nafter: %+v", keys[0], keys[1])
	}
	_, id := opened(t, responsesSocketURL).asks(early + `"input":[` + base + "," + prompt + `]}`)
	if id.Key == keys[0][1] {
		t.Error("a turn with other tools has the same key")
	}
}

// TestResponsesTurns holds the turns of two runs to equal keys, and a turn that goes on to the key of one that says everything anew.
func TestResponsesTurns(t *testing.T) {
	first, last := codexTurns(t, "one")
	second, _ := codexTurns(t, "two")
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("turn %d: %+v, then %+v", i, first[i], second[i])
		}
	}
	if first[0].Endpoint != "responses.ws.warmup" || first[1].Endpoint != "responses.ws" || first[1].Provider != "openai" ||
		first[1].Model != "gpt-5-codex" || first[1].Request == first[2].Request {
		t.Errorf("keys %+v", first)
	}
	w := opened(t, responsesSocketURL)
	_, id := w.asks("{" + fmt.Sprintf(codexHead, "three") + `"input":[` + fmt.Sprintf(codexBase, "x") + "," + fmt.Sprintf(codexPrompt, "x") +
		"," + codexEcho + "," + fmt.Sprintf(codexResult, "x") + "]}")
	if id.Key != first[2] {
		t.Errorf("everything anew is %+v, want %+v", id.Key, first[2])
	}
	var body struct {
		Previous string            `json:"previous_response_id"`
		Input    []json.RawMessage `json:"input"`
		Tapedeck json.RawMessage   `json:"tapedeck"`
	}
	if err := json.Unmarshal(last.Body, &body); err != nil || len(body.Input) != 4 || body.Previous != "" ||
		string(body.Tapedeck) != `{"sent":{"previous_response_id":"resp_1","input":1}}` {
		t.Errorf("folded to %s, %v", last.Body, err)
	}
	if talk := id.Talk(); len(talk.Turns) != 4 {
		t.Errorf("%d messages", len(talk.Turns))
	}
}

// TestAChangedWordIsAnotherTurn: what was said before counts in what comes after.
func TestAChangedWordIsAnotherTurn(t *testing.T) {
	key := func(prompt, answer string) exchange.Key {
		w := opened(t, responsesSocketURL)
		turn, _ := w.asks(`{"type":"response.create","model":"m","input":` + prompt + `}`)
		w.hears(turn.Of, answered("r", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+answer+`}]}`)...)
		_, id := w.asks(`{"type":"response.create","model":"m","previous_response_id":"r","input":"go on"}`)
		return id.Key
	}
	was := key(`"hi"`, `"a"`)
	if key(`"hi"`, `"a"`) != was || key(`"ho"`, `"a"`) == was || key(`"hi"`, `"b"`) == was {
		t.Error("the prompt and the answer before are to count, and nothing else")
	}
}

// TestAnAnswerOfAnotherSocket: what it goes on from is not known, so the turn is what was sent.
func TestAnAnswerOfAnotherSocket(t *testing.T) {
	message := `{"type":"response.create","model":"m","previous_response_id":"resp_9","input":"hi"}`
	w := opened(t, responsesSocketURL)
	turn, id := w.asks(message)
	if string(turn.Request.Body) != message || !strings.Contains(string(id.Surface), "resp_9") {
		t.Errorf("%s, surface %s", turn.Request.Body, id.Surface)
	}
}

// TestResponsesLanes: events of lanes interleave, and within one lane answers come in order.
func TestResponsesLanes(t *testing.T) {
	w := opened(t, responsesSocketURL)
	ask := func(lane string) uint64 {
		turn, _ := w.asks(`{"type":"response.create","stream_id":"` + lane + `","model":"m","input":"hi"}`)
		return turn.Of
	}
	a1, b1, a2 := ask("a"), ask("b"), ask("a")
	for _, x := range []struct {
		lane, kind, id string
		of             uint64
		part           exchange.TurnPart
	}{
		{"b", "response.created", "b1", b1, exchange.TurnWithin},
		{"a", "response.created", "a1", a1, exchange.TurnWithin},
		{"b", "response.output_text.delta", "", b1, exchange.TurnWithin},
		{"a", "response.output_text.delta", "", a1, exchange.TurnWithin},
		{"a", "response.completed", "a1", a1, exchange.TurnEnds},
		{"a", "response.created", "a2", a2, exchange.TurnWithin},
		{"b", "response.failed", "b1", b1, exchange.TurnEnds},
		{"b", "response.output_text.delta", "", 0, exchange.TurnOutside},
		{"c", "response.created", "c", 0, exchange.TurnOutside}, // of a lane that nobody named
		{"a", "response.incomplete", "a2", a2, exchange.TurnEnds},
	} {
		m := fmt.Sprintf(`{"type":%q,"stream_id":%q,"response":{"id":%q}}`, x.kind, x.lane, x.id)
		if got := w.turns.Server(exchange.TextMessage, []byte(m)); got.Of != x.of || got.Part != x.part {
			t.Errorf("%s is %+v, want %d of %d", m, got, x.part, x.of)
		}
	}
}

// TestASteeredResponse begins without a message of its own, with all that was said before it.
func TestASteeredResponse(t *testing.T) {
	w := opened(t, responsesSocketURL)
	turn, _ := w.asks(`{"type":"response.create","model":"m","instructions":"be brief","input":"hi"}`)
	w.turns.Server(exchange.TextMessage, []byte(`{"type":"response.created","response":{"id":"r1"}}`))
	if got := w.turns.Client(exchange.TextMessage,
		[]byte(`{"type":"response.steer","previous_response_id":"r1","input":"rather not"}`)); got.Part != exchange.TurnOutside {
		t.Errorf("steering is %+v", got)
	}
	w.passes(`{"type":"response.steer.accepted"}`)
	w.hears(turn.Of, `{"type":"response.output_text.delta"}`, `{"type":"response.completed","response":{"id":"r1"}}`)
	next := w.turns.Server(exchange.TextMessage, []byte(`{"type":"response.created","response":{"id":"r2"}}`))
	if next.Part != exchange.TurnBegins || next.Of == turn.Of || next.Request == nil {
		t.Fatalf("the successor is %+v", next)
	}
	if id := w.identity(next); id.Key.Kind != exchange.LLM || id.Key.Model != "m" || !strings.Contains(string(id.Surface), "rather not") ||
		!strings.Contains(string(id.Surface), "be brief") {
		t.Errorf("it is %+v: %s", id.Key, id.Surface)
	}
	w.hears(next.Of, `{"type":"response.completed","response":{"id":"r2"}}`)
}

// TestErrorsOfASocket end the turn that they are about; without one they stand by themselves.
func TestErrorsOfASocket(t *testing.T) {
	w := opened(t, responsesSocketURL)
	limit := `{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached"}}`
	for _, m := range []string{limit, `{"type":"codex.rate_limits"}`, "not JSON", "\x00\x01", `{"type":`} {
		if got := w.turns.Server(exchange.BinaryMessage, []byte(m)); got.Part != exchange.TurnOutside {
			t.Errorf("%s is %+v", m, got)
		}
	}
	for _, m := range []string{`{"type":"response.processed"}`, "not JSON", `[1]`, `{"type":"response.create","input":[}`} {
		if got := w.turns.Client(exchange.TextMessage, []byte(m)); got.Part != exchange.TurnOutside {
			t.Errorf("%s is %+v", m, got)
		}
	}
	turn, _ := w.asks(`{"type":"response.create","model":"m","input":"hi"}`)
	w.passes(`{"type":"codex.rate_limits"}`, "not JSON")
	w.hears(turn.Of, `{"type":"response.metadata"}`, limit)
	var refused struct {
		Type, Stream string
		Status       int
		Error        struct{ Type, Message string }
	}
	if err := json.Unmarshal(turn.Refuse("not on the tape"), &refused); err != nil || refused.Type != "error" ||
		refused.Status != 400 || refused.Error.Message != "not on the tape" || refused.Error.Type != "invalid_request_error" {
		t.Errorf("%+v, %v", refused, err)
	}
}

// TestResponsesSocketUsage finds what a turn used in the messages of its answer.
func TestResponsesSocketUsage(t *testing.T) {
	w := opened(t, responsesSocketURL)
	_, id := w.asks(`{"type":"response.create","model":"m","input":"hi"}`)
	answer := strings.Join(answered("r1"), "\n") + "\n"
	if got := id.Usage("", []byte(answer)); string(got) != `{"input_tokens":7,"output_tokens":3}` {
		t.Errorf("used %s", got)
	}
}

// TestOnlyASocketIsASocket: a POST of the same path is no turn over one, and a GET of https is plain.
func TestOnlyASocketIsASocket(t *testing.T) {
	body := []byte(`{"type":"response.create","model":"m","input":"hi"}`)
	for url, want := range map[[2]string]string{
		{http.MethodPost, responsesURL}: "responses", {http.MethodGet, responsesURL}: "", {http.MethodPost, responsesSocketURL}: "responses",
		{http.MethodGet, responsesSocketURL}: "responses.ws",
	} {
		id, err := llm.NewClassifier(nil).Classify(&exchange.Request{Method: url[0], URL: url[1], Body: body})
		if err != nil || id.Key.Endpoint != want {
			t.Errorf("%v: %+v, %v", url, id, err)
		}
	}
	if got := llm.NewClassifier(nil).Sockets(&exchange.Request{URL: "wss://example.com/chat"}); got != nil {
		t.Errorf("a chat is %T", got)
	}
}
