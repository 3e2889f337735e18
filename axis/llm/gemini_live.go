package llm

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Gemini Live: one setup, then what the user's side says (clientContent, realtimeInput, toolResponse) and what the model answers. The
// server keeps the conversation. A turn asks for the setup and for all contents so far, as generateContent would. A call of tools
// ends it, for the model waits for what they give; a turn that the server began, having heard that the user has ended, has no
// message of its own.

// liveKeys are those of a folded turn.
var liveKeys = &keys{
	messages: "contents",
	surface:  geminiKeys.surface,
	ignored: ignoring(geminiIgnored,
		exempt{"sessionResumption", "names the session that the socket goes on from"},
		exempt{foldedKey, "Tapedeck's own: what of the request was sent"},
	),
}

// liveCamel are the names of what messages hold, from those that proto JSON takes as well.
var liveCamel = map[string]string{
	"client_content": "clientContent", "realtime_input": "realtimeInput", "tool_response": "toolResponse",
	"turn_complete": "turnComplete", "function_responses": "functionResponses", "media_chunks": "mediaChunks",
	"activity_end": "activityEnd", "server_content": "serverContent", "tool_call": "toolCall", "model_turn": "modelTurn",
	"function_calls": "functionCalls", "output_transcription": "outputTranscription", "session_resumption": "sessionResumption",
	"system_instruction": "systemInstruction", "generation_config": "generationConfig",
}

// readLive takes a folded turn apart.
func readLive(body *canonjson.Value, k *keys) (call, bool) {
	c, ok := readGemini(body, k)
	if i := strings.LastIndex(c.model, "models/"); i >= 0 {
		c.model = c.model[i+len("models/"):]
	}
	return c, ok
}

// liveTurns follows one socket.
type liveTurns struct {
	*socket
	setup    canonjson.Value
	contents []canonjson.Value
	said     []canonjson.Value // parts of the user's that came one by one, and are no content yet
	sound    stream
	calls    map[string]bool // ids of calls of tools whose results have not come
	open     []*liveTurn     // in the order in which they began; the first is answered
}

// A liveTurn is a turn under way.
type liveTurn struct {
	of    uint64
	parts []canonjson.Value
	words string // what was spoken, where the provider wrote it down
}

func newLiveTurns(s *socket) exchange.Turns {
	return &liveTurns{socket: s, setup: object(), calls: make(map[string]bool)}
}

// Client implements exchange.Turns.
func (t *liveTurns) Client(_ int, payload []byte) exchange.Turn {
	m, err := canonjson.Parse(payload)
	if err != nil || m.Kind != canonjson.Object {
		return outside
	}
	turn := outside
	rename(&m, liveCamel)
	for i := range m.Members {
		value := &m.Members[i].Value
		rename(value, liveCamel)
		switch m.Members[i].Key {
		case "setup":
			shrink(value)
			t.setup = *value
		case "clientContent":
			turn = t.content(value)
		case "realtimeInput":
			turn = t.input(value)
		case "toolResponse":
			turn = t.results(value)
		}
	}
	return turn
}

// content takes whole contents, which ask for an answer where they say so.
func (t *liveTurns) content(v *canonjson.Value) exchange.Turn {
	shrink(v)
	t.gather()
	at(v, "turns", func(turns *canonjson.Value) { t.contents = append(t.contents, turns.Elems...) })
	if complete := get(v, "turnComplete"); complete != nil && complete.Bool {
		return t.ask()
	}
	return outside
}

// input takes what comes as the user says it. A text asks for an answer, and so does the end of what the user does; where the server
// hears by itself when the user has ended, nothing does.
func (t *liveTurns) input(v *canonjson.Value) exchange.Turn {
	asks := get(v, "activityEnd") != nil
	for i := range v.Members {
		m := &v.Members[i]
		switch m.Key {
		case "text":
			t.hush()
			t.said = append(t.said, object(field("text", m.Value)))
			asks = true
		case "audio", "video":
			t.sound.add(member(&m.Value, "data"))
		case "mediaChunks":
			each(&m.Value, func(chunk *canonjson.Value) { t.sound.add(member(chunk, "data")) })
		}
	}
	if asks && len(t.open) == 0 {
		t.gather()
		return t.ask()
	}
	return outside
}

// hush makes a part of the sound that came.
func (t *liveTurns) hush() {
	if name := t.sound.end(); name != "" {
		t.said = append(t.said, object(field("inlineData", object(field("data", text(name))))))
	}
}

// gather makes a content of the parts that came one by one.
func (t *liveTurns) gather() {
	t.hush()
	if len(t.said) > 0 {
		t.contents = append(t.contents, contentBy("user", t.said))
		t.said = nil
	}
}

func contentBy(role string, parts []canonjson.Value) canonjson.Value {
	return object(field("role", text(role)), field("parts", array(parts...)))
}

// results takes what tools gave. The model goes on once it has all.
func (t *liveTurns) results(v *canonjson.Value) exchange.Turn {
	shrink(v)
	var parts []canonjson.Value
	at(v, "functionResponses", func(list *canonjson.Value) {
		each(list, func(result *canonjson.Value) {
			delete(t.calls, member(result, "id"))
			parts = append(parts, object(field("functionResponse", *result)))
		})
	})
	if len(parts) == 0 {
		return outside
	}
	t.contents = append(t.contents, contentBy("user", parts))
	if len(t.calls) > 0 || len(t.open) > 0 {
		return outside
	}
	return t.ask()
}

// ask begins a turn that the program asks for. What refuses it is the end of the socket: the protocol has no errors of turns.
func (t *liveTurns) ask() exchange.Turn {
	begun := t.begin(t.folded(), nil)
	t.open = append(t.open, &liveTurn{of: begun.Of})
	return begun
}

func (t *liveTurns) folded() []byte {
	whole := t.setup
	whole.Members = append([]canonjson.Member{{Key: "contents", Value: array(t.contents...)}}, t.setup.Members...)
	return whole.Append(nil)
}

// A liveMessage is what a message of the server says of its turn.
type liveMessage struct {
	Content *struct {
		Turn struct {
			Parts []byte `json:"parts"`
		} `json:"modelTurn|model_turn"`
		Spoken struct {
			Text string `json:"text"`
		} `json:"outputTranscription|output_transcription"`
		Complete bool `json:"turnComplete|turn_complete"`
	} `json:"serverContent|server_content"`
	Tools struct {
		Calls []byte `json:"functionCalls|function_calls"`
	} `json:"toolCall|tool_call"`

	parts, calls []byte
	words        string
	complete     bool
}

// readLiveMessage reads a message; false where it is of no answer.
func readLiveMessage(payload []byte) (m liveMessage, ok bool) {
	ok = fillWhole(payload, &m)
	m.calls = m.Tools.Calls
	if c := m.Content; c != nil {
		m.parts, m.words, m.complete = c.Turn.Parts, c.Spoken.Text, c.Complete
	}
	return m, ok && (m.Content != nil || m.calls != nil)
}

// speaks reports whether the model says something in it.
func (m *liveMessage) speaks() bool { return m.parts != nil || m.calls != nil || m.words != "" }

// ends reports whether it ends its turn.
func (m *liveMessage) ends() bool { return m.complete || m.calls != nil }

// Server implements exchange.Turns.
func (t *liveTurns) Server(_ int, payload []byte) exchange.Turn {
	m, ok := readLiveMessage(payload)
	if !ok {
		return outside
	}
	var begun exchange.Turn
	if len(t.open) == 0 {
		if !m.speaks() {
			return outside
		}
		t.gather()
		begun = t.ask()
	}
	turn := t.open[0]
	turn.take(&m, t.calls)
	if !m.ends() {
		if begun.Part != exchange.TurnOutside {
			return begun
		}
		return partOfTurn(turn.of, false)
	}
	t.open = t.open[1:]
	if answer := turn.answer(); len(answer) > 0 {
		t.contents = append(t.contents, contentBy("model", answer))
	}
	if begun.Part != exchange.TurnOutside {
		begun.Part = exchange.TurnWhole
		return begun
	}
	return partOfTurn(turn.of, true)
}

// take adds what a message says to the answer.
func (turn *liveTurn) take(m *liveMessage, calls map[string]bool) {
	turn.words += m.words
	for _, raw := range elements(m.parts) {
		if part, err := canonjson.Parse(raw); err == nil {
			shrink(&part)
			turn.add(part)
		}
	}
	for _, raw := range elements(m.calls) {
		if call, err := canonjson.Parse(raw); err == nil {
			calls[member(&call, "id")] = true
			turn.parts = append(turn.parts, object(field("functionCall", call)))
		}
	}
}

// add adds a part of the model's: texts that follow one another are one, for where they are cut says nothing.
func (turn *liveTurn) add(part canonjson.Value) {
	if n := len(turn.parts); n > 0 && onlyWords(&part) && onlyWords(&turn.parts[n-1]) {
		words := get(&turn.parts[n-1], "text")
		words.Str += get(&part, "text").Str
		return
	}
	turn.parts = append(turn.parts, part)
}

func onlyWords(part *canonjson.Value) bool {
	words := get(part, "text")
	return len(part.Members) == 1 && words != nil && words.Kind == canonjson.String
}

// answer returns the parts of the whole answer. What was spoken stands in the place of its sound, where it was written down.
func (turn *liveTurn) answer() []canonjson.Value {
	if turn.words == "" {
		return turn.parts
	}
	out := []canonjson.Value{object(field("text", text(turn.words)))}
	for _, part := range turn.parts {
		if get(&part, "inlineData") == nil && get(&part, "inline_data") == nil {
			out = append(out, part)
		}
	}
	return out
}

// liveProtocol is Gemini Live. Its requests are folded to those of the Gemini API.
var liveProtocol = &protocol{
	name: "gemini-live", messages: "contents",
	event: liveEvent,
}

// liveEvent reads one message of the server. What was spoken counts as it was written down, and not as sound.
func liveEvent(a *answering, e *event) {
	m, _ := readLiveMessage(e.Raw)
	for _, part := range elements(m.parts) {
		if objectAt(part, "inlineData") == nil && objectAt(part, "inline_data") == nil {
			geminiPiece(a, part)
		}
	}
	a.say(textKind, m.words)
	for _, raw := range elements(m.calls) {
		a.put(callOf(raw))
	}
	if m.calls != nil {
		a.stop("toolCall")
	}
	if m.complete {
		a.stop("turnComplete")
	}
}
