package llm

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// OpenAI's Responses API over a WebSocket: response.create begins a turn, and its answer is the events that HTTP streams. A message
// that goes on from an answer (previous_response_id) holds what is new alone; it is folded with what that answer had gone on from,
// where that passed on the same socket, and else stands as it was sent. Lanes (stream_id) run side by side, within one lane turns
// wait for one another. A steered response starts with no message of its own.

// maxThreads is how many answers of a socket can be gone on from: the servers keep one a lane, of 33.
const maxThreads = 256

// responsesTurns follows one socket.
type responsesTurns struct {
	*socket
	threads map[string]*thread // by the id of the answer that ends it
	ids     []string           // of threads, the oldest first
	lanes   map[string]*responsesLane
}

// A responsesLane is the turns of one stream_id; "" is the default one.
type responsesLane struct {
	open    []*responsesTurn // in the order in which they were asked for; the first of them that has begun runs
	head    []byte           // the settings of the last request, as they stood: an object without its input
	latest  *thread          // after its last answer
	steered [][]byte         // input that was queued for a response that runs
}

// A responsesTurn is a turn under way.
type responsesTurn struct {
	of     uint64
	id     string // of its answer; "" before that has begun
	thread *thread
	output [][]byte
}

func newResponsesTurns(s *socket) exchange.Turns {
	return &responsesTurns{socket: s, threads: make(map[string]*thread), lanes: make(map[string]*responsesLane)}
}

func (t *responsesTurns) lane(name string) *responsesLane {
	l := t.lanes[name]
	if l == nil {
		l = new(responsesLane)
		t.lanes[name] = l
	}
	return l
}

// A responsesMessage is what a message of either side says of its turn.
type responsesMessage struct {
	Kind     string `json:"type"`
	Lane     string `json:"stream_id"`
	Previous string `json:"previous_response_id"`
	Input    []byte `json:"input"`
	Item     []byte `json:"item"`
	Response []byte `json:"response"`
}

// Client implements exchange.Turns.
func (t *responsesTurns) Client(_ int, payload []byte) exchange.Turn {
	var m responsesMessage
	if !fillWhole(payload, &m) {
		return outside
	}
	switch m.Kind {
	case "response.create":
		return t.create(&m, payload)
	case "response.steer":
		l := t.lane(m.Lane)
		l.steered = append(l.steered, inputItems(m.Input)...)
	}
	return outside
}

// create begins a turn that the program asks for.
func (t *responsesTurns) create(m *responsesMessage, payload []byte) exchange.Turn {
	before := t.threads[m.Previous]
	if _, _, twice := jsonscan.Duplicate(payload); twice {
		before = nil
	}
	own := inputItems(m.Input)
	turn := &responsesTurn{thread: before.then(own)}
	l := t.lane(m.Lane)
	l.open = append(l.open, turn)
	head := without(payload, "input", "previous_response_id", "generate")
	l.head = head.end()
	body := bytes.Clone(payload)
	if before != nil && before.size+len(payload) <= maxFolded {
		body = folded(payload, turn.thread, m.Previous, len(own))
	}
	begun := t.begin(body, refuseResponses(m.Lane))
	turn.of = begun.Of
	return begun
}

// folded returns a request with the whole of a conversation as its input.
func folded(payload []byte, whole *thread, previous string, sent int) []byte {
	f := without(payload, "input", "previous_response_id")
	f.add("input", whole.list())
	f.add(foldedKey, sentOf(previous, sent))
	return f.end()
}

// sentOf is what a folded request says of the message that was sent: which answer it went on from, and how many of the items, the
// last ones, stood in it.
func sentOf(previous string, items int) []byte {
	var sent, f folding
	if previous != "" {
		sent.add("previous_response_id", jsonText(previous))
	}
	sent.add("input", []byte(strconv.Itoa(items)))
	f.add("sent", sent.end())
	return f.end()
}

// without returns a request but for some keys, as an object that goes on.
func without(payload []byte, keys ...string) (f folding) {
	members(payload, func(key, value []byte) {
		if !slices.Contains(keys, string(key)) {
			f.add(string(key), value)
		}
	})
	return f
}

// inputItems are copies of the items of an input, of which a bare text is one.
func inputItems(input []byte) [][]byte {
	if isText(input) {
		return [][]byte{append(append([]byte(`{"type":"message","role":"user","content":`), input...), '}')}
	}
	return ownItems(input)
}

// Server implements exchange.Turns.
func (t *responsesTurns) Server(_ int, payload []byte) exchange.Turn {
	var m responsesMessage
	if !fillWhole(payload, &m) || t.lanes[m.Lane] == nil {
		return outside
	}
	l := t.lanes[m.Lane]
	switch m.Kind {
	case "response.created":
		return t.created(l, idIn(m.Response))
	case "response.completed", "response.incomplete", "response.failed":
		return t.ended(l, m.Response)
	case "error":
		if len(l.open) == 0 {
			return outside
		}
		return t.close(l, 0)
	}
	if len(l.open) == 0 || !strings.HasPrefix(m.Kind, "response.") || strings.HasPrefix(m.Kind, "response.steer.") {
		return outside
	}
	turn := l.open[0]
	if m.Kind == "response.output_item.done" && isObject(m.Item) {
		turn.output = append(turn.output, bytes.Clone(m.Item))
	}
	return partOfTurn(turn.of, false)
}

// created takes the beginning of an answer. Where nobody waits for one, the server began it: a response was steered.
func (t *responsesTurns) created(l *responsesLane, id string) exchange.Turn {
	for _, turn := range l.open {
		if turn.id == "" {
			turn.id = id
			return partOfTurn(turn.of, false)
		}
	}
	own := l.steered
	l.steered = nil
	turn := &responsesTurn{id: id, thread: l.latest.then(own)}
	l.open = append(l.open, turn)
	body := folded(l.head, turn.thread, "", 0)
	begun := t.begin(body, nil)
	turn.of = begun.Of
	return begun
}

// ended takes the end of an answer, which can be gone on from.
func (t *responsesTurns) ended(l *responsesLane, response []byte) exchange.Turn {
	if len(l.open) == 0 {
		return outside
	}
	whole := nodeOf(response)
	at := max(0, slices.IndexFunc(l.open, func(turn *responsesTurn) bool { return turn.id == whole.ID }))
	turn := l.open[at]
	output := turn.output
	if len(output) == 0 {
		output = ownItems(whole.Output)
	}
	l.latest = turn.thread.then(output)
	t.remember(whole.ID, l.latest)
	return t.close(l, at)
}

// remember keeps an answer to go on from, and forgets the oldest of too many.
func (t *responsesTurns) remember(id string, after *thread) {
	if id == "" {
		return
	}
	if t.threads[id] == nil {
		t.ids = append(t.ids, id)
	}
	t.threads[id] = after
	if len(t.ids) > maxThreads {
		delete(t.threads, t.ids[0])
		t.ids = t.ids[1:]
	}
}

// close ends the turn of a lane that stands at a place.
func (t *responsesTurns) close(l *responsesLane, at int) exchange.Turn {
	turn := l.open[at]
	l.open = slices.Delete(l.open, at, at+1)
	return partOfTurn(turn.of, true)
}

// refuseResponses makes the event that refuses a turn of a lane. It carries a status, without which codex waits on, and one that no
// client tries again.
func refuseResponses(lane string) func(string) []byte {
	return func(message string) []byte {
		var f folding
		f.add("type", []byte(`"error"`))
		f.add("status", []byte(strconv.Itoa(exchange.RefusedStatus)))
		if lane != "" {
			f.add("stream_id", jsonText(lane))
		}
		f.add("error", objectAt(openAIError(exchange.RefusedStatus, message), "error"))
		return f.end()
	}
}
