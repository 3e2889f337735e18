package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// OpenAI's Realtime API: the server keeps the conversation, and response.create asks for the next answer of it. So a turn asks for the
// settings of the session as the program made them, and for all items so far: what the program said, and what was answered. Where
// the server hears by itself that the user has ended (server VAD), an answer begins with no message of the program.

// realtimeKeys are those of a folded turn, which reads like one of Responses.
var realtimeKeys = &keys{
	messages: "input",
	surface:  []string{"instructions", "tools", "tool_choice", "prompt", "reasoning"},
	ignored: []exempt{
		{"event_id", "the program's name of its message"},
		{"metadata", "labels for the caller's own books"},
		{"tracing", "names of traces"},
		{foldedKey, "Tapedeck's own: what of the request was sent"},
	},
}

// realtimeTurns follows one socket.
type realtimeTurns struct {
	*socket
	session canonjson.Value
	items   []realtimeItem
	sound   stream
	open    []*realtimeTurn // in the order in which they began
}

// maxOpen is how many turns of a socket may be under way: servers answer one at a time, and some beside the conversation.
const maxOpen = 256

// A realtimeItem is one item of the conversation. The server names those that the program did not.
type realtimeItem struct {
	id    string
	value canonjson.Value
}

// A realtimeTurn is a turn under way.
type realtimeTurn struct {
	of    uint64
	id    string // of the answer; "" before it has begun
	event string // the program's name of its message; "" for none
	aside bool   // the answer does not join the conversation
}

func newRealtimeTurns(s *socket) exchange.Turns {
	t := &realtimeTurns{socket: s, session: object()}
	for _, name := range []string{"model", "deployment"} {
		if model := s.query.Get(name); model != "" {
			t.session = object(field(modelKey, text(model)))
			break
		}
	}
	return t
}

// Client implements exchange.Turns.
func (t *realtimeTurns) Client(_ int, payload []byte) exchange.Turn {
	m, err := canonjson.Parse(payload)
	if err != nil || m.Kind != canonjson.Object {
		return outside
	}
	switch member(&m, "type") {
	case "session.update":
		shrink(&m)
		at(&m, "session", func(s *canonjson.Value) { merge(&t.session, s) })
	case "conversation.item.create":
		shrink(&m)
		at(&m, "item", func(item *canonjson.Value) { t.insert(member(&m, "previous_item_id"), *item) })
	case "conversation.item.delete":
		id := member(&m, "item_id")
		t.items = slices.DeleteFunc(t.items, func(i realtimeItem) bool { return i.id == id && id != "" })
	case "input_audio_buffer.append":
		t.sound.add(member(&m, "audio"))
	case "input_audio_buffer.clear":
		t.sound = stream{}
	case "input_audio_buffer.commit":
		t.commit("", "")
	case "response.create":
		shrink(&m)
		return t.create(&m)
	}
	return outside
}

// insert puts an item behind the one of an id: "root" is the beginning, and one that nobody knows the end.
func (t *realtimeTurns) insert(after string, value canonjson.Value) {
	item := realtimeItem{id: member(&value, "id"), value: value}
	at := len(t.items)
	if after == "root" {
		at = 0
	} else if i := t.find(after); i >= 0 {
		at = i + 1
	}
	t.items = slices.Insert(t.items, at, item)
}

// find returns the index of an item, -1 for none.
func (t *realtimeTurns) find(id string) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(t.items, func(i realtimeItem) bool { return i.id == id })
}

// commit makes an item of the sound that came.
func (t *realtimeTurns) commit(id, after string) {
	name := t.sound.end()
	if name == "" || t.find(id) >= 0 {
		return
	}
	sound := object(field("type", text("input_audio")), field("audio", text(name)))
	item := object(field("type", text("message")), field("role", text("user")), field("content", array(sound)))
	if id != "" {
		put(&item, "id", text(id))
	}
	t.insert(after, item)
}

// create begins a turn that the program asks for.
func (t *realtimeTurns) create(m *canonjson.Value) exchange.Turn {
	settings := get(m, "response")
	if settings == nil || settings.Kind != canonjson.Object {
		settings = &canonjson.Value{Kind: canonjson.Object}
	}
	turn := &realtimeTurn{event: member(m, "event_id"), aside: member(settings, "conversation") == "none"}
	begun := t.begin(t.folded(settings), refuseRealtime)
	turn.of = begun.Of
	t.open = append(t.open, turn)
	return begun
}

// folded returns what an answer is asked for with such settings of its own.
func (t *realtimeTurns) folded(settings *canonjson.Value) []byte {
	whole := copyOf(&t.session)
	merge(&whole, settings)
	if get(&whole, "input") == nil {
		input := array()
		for i := range t.items {
			input.Elems = append(input.Elems, t.items[i].value)
		}
		put(&whole, "input", input)
	}
	put(&whole, foldedKey, object(field("sent", *settings)))
	return whole.Append(nil)
}

// A realtimeEvent is what a message of the server says of its turn.
type realtimeEvent struct {
	Kind     string `json:"type"`
	Response string `json:"response_id"`
	Item     string `json:"item_id"`
	Previous string `json:"previous_item_id"`
	Added    []byte `json:"item"`
	Answer   []byte `json:"response"`
	Error    struct {
		Cause string `json:"event_id"`
	} `json:"error"`
}

// Server implements exchange.Turns.
func (t *realtimeTurns) Server(_ int, payload []byte) exchange.Turn {
	var e realtimeEvent
	if !fillWhole(payload, &e) {
		return outside
	}
	if e.Answer != nil {
		e.Response = idIn(e.Answer)
	}
	switch e.Kind {
	case "response.created":
		return t.created(&e)
	case "response.done":
		return t.done(&e)
	case "conversation.item.added", "conversation.item.created":
		t.name(e.Added)
	case "input_audio_buffer.committed":
		t.commit(e.Item, e.Previous)
	case "error":
		return t.failed(&e)
	}
	if turn := t.of(e.Response); turn != nil {
		return partOfTurn(turn.of, false)
	}
	return outside
}

// of returns the turn of an answer, nil for none.
func (t *realtimeTurns) of(id string) *realtimeTurn {
	for _, turn := range t.open {
		if turn.id == id && id != "" {
			return turn
		}
	}
	return nil
}

// created takes the beginning of an answer, of the first turn that waits for one; where none does the server began it.
func (t *realtimeTurns) created(e *realtimeEvent) exchange.Turn {
	for _, turn := range t.open {
		if turn.id == "" {
			turn.id = e.Response
			return partOfTurn(turn.of, false)
		}
	}
	if len(t.open) >= maxOpen { // each holds all that was said before
		return outside
	}
	begun := t.begin(t.folded(&canonjson.Value{Kind: canonjson.Object}), nil)
	t.open = append(t.open, &realtimeTurn{of: begun.Of, id: e.Response})
	return begun
}

// done takes the end of an answer, whose items join the conversation.
func (t *realtimeTurns) done(e *realtimeEvent) exchange.Turn {
	turn := t.of(e.Response)
	if turn == nil {
		return outside
	}
	if answer, err := canonjson.Parse(e.Answer); err == nil && !turn.aside {
		shrink(&answer)
		at(&answer, "output", func(items *canonjson.Value) {
			for _, item := range items.Elems {
				t.insert("", item)
			}
		})
	}
	return t.close(turn)
}

// failed takes an error: of the turn whose message it names, or of the first that waits where it names none.
func (t *realtimeTurns) failed(e *realtimeEvent) exchange.Turn {
	for _, turn := range t.open {
		if turn.id == "" && (e.Error.Cause == "" || e.Error.Cause == turn.event) {
			return t.close(turn)
		}
	}
	return outside
}

func (t *realtimeTurns) close(turn *realtimeTurn) exchange.Turn {
	t.open = slices.DeleteFunc(t.open, func(other *realtimeTurn) bool { return other == turn })
	return partOfTurn(turn.of, true)
}

// name gives the first item of the program's that has none the name that the server gave it.
func (t *realtimeTurns) name(added []byte) {
	item, err := canonjson.Parse(added)
	id := member(&item, "id")
	if err != nil || id == "" || t.find(id) >= 0 || member(&item, "role") == "assistant" || member(&item, "type") == "function_call" {
		return
	}
	for i := range t.items {
		if t.items[i].id == "" {
			t.items[i].id = id
			return
		}
	}
}

// refuseRealtime makes the event that refuses a turn.
func refuseRealtime(message string) []byte {
	var f folding
	f.add("type", []byte(`"error"`))
	f.add("event_id", []byte(`"event_tapedeck"`))
	f.add("error", objectAt(openAIError(exchange.RefusedStatus, message), "error"))
	return f.end()
}

// realtimeProtocol is the Realtime API, whose items and events are those of Responses, and more of them.
var realtimeProtocol = &protocol{
	name: "openai-realtime", messages: "input",
	event: responsesEvent,
}
