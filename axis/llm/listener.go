package llm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaxSaid is the longest body, in bytes and decoded, that a Listener reads.
const MaxSaid = 256 << 20

// ErrNoTalk is returned for a call that is no part of a conversation: an embedding, an image, or one whose protocol is not known.
var ErrNoTalk = errors.New("no call of a conversation")

// Said is what one call of a model says of its conversation.
type Said struct {
	Protocol string // "anthropic-messages", "openai-chat", "openai-responses", "openai-realtime", "gemini", "gemini-live", "ollama", "cohere", "bedrock-converse"; "" else
	Model    string // as the request names it
	System   string // the system text of the request; "" for none
	Tools    bool   // the request declares tools that the program itself runs; the provider's own (a web search) are none
	Follows  string // the id of the answer that the provider goes on from (previous_response_id); "" for none

	Messages int     // in the request's history
	Known    int     // how many of them, from the first, stood in the Listener's last request byte for byte
	New      []Heard // the others, in order

	Answer *Answer // what the model said; nil where nothing of it came, or the call failed
}

// The roles of what a history holds, whatever a provider calls them.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool" // results alone
)

// Heard is one message of a request's history.
type Heard struct {
	Role        string
	Texts       []string                // its texts, in order
	Attachments [][]byte                // other blocks of the user's, as they stood: images, documents
	Calls       []sessionlog.ToolCall   // of the assistant's
	Results     []sessionlog.ToolResult // what tools gave
	names       []string                // of the tools, one a result; "" where the protocol has none
}

// Answer is what a model said. Message.Content is one JSON string where the model gave text alone, else the list of the
// provider's blocks. Reasoning, and the calls of tools that the program runs, are left out of it; calls that the provider ran
// itself, and what they gave, are blocks.
type Answer struct {
	ID        string // the provider's name of the answer; "" for none
	Model     string // that answered, as the answer names it; "" where it does not
	Message   sessionlog.Message
	Reasoning string   // as far as the provider shows it
	Native    [][]byte // blocks of reasoning as they came, which a provider may want back
	Stop      string   // the provider's reason; "" where none came
	Whole     bool     // the answer came to its end
	Tokens    int64    // input and output; 0 where nobody counted
}

// ReadCall reads one call by itself: all of its history is new. See Listener.
func ReadCall(call *tape.LLMCall, request, response []byte) (*Said, error) {
	return new(Listener).Read(call, request, response)
}

// A Listener reads the calls of one conversation, one after another. Every request repeats the history: what stood in the
// one before is compared, not read, so that a conversation costs little more than a pass over its bytes. The zero Listener is
// ready. It holds the last request, and is not safe for concurrent use.
//
// Some protocols have no ids for calls (Gemini, Ollama, Cohere's first version, OpenAI's function_call). There the Listener
// gives them: "call_1" is the first such call of the conversation, "call_2" the second. Results that name no id, or one that no
// call has, belong to the calls of the answer before them: to the first of the same name that has no result yet, and where
// results name nothing, in order.
type Listener struct {
	scan jsonscan.Scanner
	was  lastRequest

	system string    // of the last request, where it stood in its messages
	given  int       // calls that were given an id
	open   openCalls // calls of the last answer
}

// Read reads the next call: its payloads as the tape keeps them, a Content-Encoding and all. It does not keep them beyond the
// next Read. The error wraps ErrNoTalk, or says what does not hold; the next call can be read all the same. An answer that
// does not decode is none, and no error where it was cut.
func (l *Listener) Read(call *tape.LLMCall, request, response []byte) (*Said, error) {
	request, err := exchange.Decode(encodingOf(call.RequestHeaders), request, MaxSaid)
	if err != nil {
		return nil, fmt.Errorf("its request: %w", err)
	}
	p := protocolOf(call, request)
	if p == nil {
		return nil, ErrNoTalk
	}
	said := &Said{Protocol: p.name, Model: call.Model}
	if err := l.request(p, request, said); err != nil {
		return nil, fmt.Errorf("its request: %w", err)
	}
	if call.Status != 0 && call.Status != http.StatusOK && call.Status != http.StatusSwitchingProtocols {
		return said, nil
	}
	cut := call.Error != ""
	if response, err = exchange.DecodeCut(encodingOf(call.ResponseHeaders), response, MaxSaid, cut); err != nil {
		return nil, fmt.Errorf("its answer: %w", err)
	}
	said.Answer = l.answer(p, response)
	if said.Answer != nil {
		if cut {
			said.Answer.Whole = false
		}
		if u, ok := UsageOf(call); ok {
			said.Answer.Tokens = u.InputTokens + u.OutputTokens
		}
	}
	return said, nil
}

// encodingOf is the Content-Encoding that the fields of a record name.
func encodingOf(fields []tape.HeaderField) string {
	return exchange.HeaderOf(fields).Get("Content-Encoding")
}

// A protocol is how a provider writes a conversation.
type protocol struct {
	name     string // as a provider_replay has it
	messages string // the key of the list of messages
	wrapped  string // the key of the object in which all of it stands; "" for none
	// event reads one JSON text of an answer: all of it, or one event of a stream.
	event func(a *answering, e *event)
	// unpack returns the text that a text of an answer wraps; nil for none.
	unpack func(text []byte) []byte

	// How an answer is put on the wire; nil where nobody does.
	whole   func(r *Reply) wireObject
	stream  func(r *Reply, emit func(name string, event wireObject))
	framing *framing

	putSystem func(body *canonjson.Value, s string) // puts a system text into a request; nil where nobody changes one
}

// protocolOf returns how a call's conversation is written; nil where it has none.
func protocolOf(call *tape.LLMCall, request []byte) *protocol {
	if call.Provider == bedrock {
		return bedrockProtocol(call, request)
	}
	if call.Provider == cohere && strings.Contains(call.URL, "/v1/") {
		return cohereFirstProtocol
	}
	for i := range endpoints {
		if e := &endpoints[i]; e.provider == call.Provider && e.name == call.Endpoint && e.talk != nil {
			return e.talk
		}
	}
	return nil
}

// prompted returns the protocol of an endpoint that is given one prompt in the place of messages.
func prompted(p *protocol) *protocol {
	out := *p
	out.messages, out.whole, out.stream = "prompt", nil, nil
	return &out
}

// Talks reports whether a call, whose request stands in body without its Content-Encoding, is one of a conversation.
func Talks(call *tape.LLMCall, body []byte) bool { return protocolOf(call, body) != nil }

// A lastRequest is what of a request the next one is held against.
type lastRequest struct {
	list    []byte // its messages, from the bracket on
	ends    []int  // where in list each message ends
	results []byte // those of Cohere's first version, which stand beside its messages
}

// hearing is the reading of one request.
type hearing struct {
	l    *Listener
	p    *protocol
	said *Said
	next lastRequest
	cur  *Heard
}

// request reads the body of a request. After a failure nothing is known of it.
func (l *Listener) request(p *protocol, body []byte, said *Said) error {
	h := &hearing{l: l, p: p, said: said}
	l.scan.Reset(body)
	h.members(&l.scan)
	l.was = h.next
	if err := l.scan.Err(); err != nil {
		l.was = lastRequest{}
		return err
	}
	if said.Known == 0 {
		l.system = ""
	}
	h.systemMessages()
	l.pair(said.New)
	return nil
}

// members reads the keys of the request.
func (h *hearing) members(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch key := s.Key(); {
		case string(key) == h.p.messages && h.next.list == nil:
			h.messages(s)
		case string(key) == h.p.messages:
			s.Fail("%s stands twice", h.p.messages)
		case h.p.wrapped != "" && string(key) == h.p.wrapped && s.Peek() == '{':
			h.members(s)
		case topReaders[string(key)] != nil:
			topReaders[string(key)](h, s.Raw())
		default:
			s.Skip()
		}
	}
}

// messages reads the history behind what of it is known.
func (h *hearing) messages(s *jsonscan.Scanner) {
	s.Peek()
	list := s.Rest()
	if s.Peek() != '[' {
		h.lone(s, list)
		return
	}
	was := &h.l.was
	known, same := 0, 0
	for _, end := range was.ends {
		if end > len(list) || !bytes.Equal(was.list[same:end], list[same:end]) {
			break
		}
		known, same = known+1, end
	}
	if known > 0 && strings.IndexByte(`}]"`, list[same-1]) < 0 { // a number does not show by itself where it ends
		known = 0
	}
	base := -s.Offset()
	h.next.ends = was.ends[:known] // whose rest nobody reads again
	if known > 0 {
		base = same
		s.Reset(list[base:])
	} else {
		s.Begin('[')
	}
	for s.More(']') {
		h.message(s.Raw())
		h.next.ends = append(h.next.ends, base+s.Offset())
	}
	if s.Err() != nil {
		return
	}
	h.next.list = list[:base+s.Offset()]
	h.said.Messages, h.said.Known = len(h.next.ends), known
}

// lone reads a history that is one bare text of the user's.
func (h *hearing) lone(s *jsonscan.Scanner, list []byte) {
	from := s.Offset()
	text := textIn(s.Raw())
	if s.Err() != nil {
		return
	}
	h.next.list = list[:s.Offset()-from]
	h.next.ends = []int{len(h.next.list)}
	h.said.Messages = 1
	if bytes.Equal(h.l.was.list, h.next.list) {
		h.said.Known = 1
		return
	}
	h.begin(RoleUser)
	h.text(text)
}

// topReaders read the keys of a request that say something beside its messages, in any provider's form.
var topReaders = map[string]func(h *hearing, raw []byte){
	"system": hearSystem, "instructions": hearSystem, "preamble": hearSystem,
	"systemInstruction": hearContent, "system_instruction": hearContent,
	"tools": hearTools, "functions": hearTools,
	"toolConfig": func(h *hearing, raw []byte) {
		var config struct {
			Tools []byte `json:"tools"`
		}
		fill(raw, &config)
		hearTools(h, config.Tools)
	},
	"previous_response_id": func(h *hearing, raw []byte) { h.follow(textIn(raw)) },
	foldedKey: func(h *hearing, raw []byte) {
		var sent responsesMessage
		fill(objectAt(raw, "sent"), &sent)
		h.follow(sent.Previous)
	},
	"tool_results": hearResults,
}

func hearSystem(h *hearing, raw []byte) { h.said.System = cmp.Or(textsIn(raw), h.said.System) }

func (h *hearing) follow(id string) { h.said.Follows = cmp.Or(id, h.said.Follows) }

func hearContent(h *hearing, raw []byte) {
	n := nodeOf(raw)
	hearSystem(h, n.Content)
}

func hearTools(h *hearing, raw []byte) {
	h.said.Tools = h.said.Tools || slices.ContainsFunc(elements(raw), declares)
}

// hearResults reads those of Cohere's first version, which stand beside the history: [{"call":{"name":…},"outputs":[…]}].
func hearResults(h *hearing, raw []byte) {
	if h.next.results = raw; bytes.Equal(raw, h.l.was.results) {
		return
	}
	h.begin(RoleTool)
	for _, one := range elements(raw) {
		result := nodeOf(one)
		called := nodeOf(objectAt(one, "call"))
		result.Name = called.Name
		h.block(result.result())
	}
}

// message reads one message of the history, in any provider's form. An item of Responses may be a call or a result itself.
func (h *hearing) message(raw []byte) {
	if !isObject(raw) {
		return
	}
	n := nodeOf(raw)
	if n.Role == "" && n.Kind != "" {
		b := n.block()
		if h.begin(RoleAssistant); b.kind == resultKind {
			h.cur.Role = RoleTool
		}
		h.block(b)
		return
	}
	if h.begin(n.Role); h.cur.Role == RoleTool && !slices.ContainsFunc(elements(n.Content), isResult) {
		h.block(n.result())
		return
	}
	h.text(textIn(n.Content))
	for _, part := range elements(n.Content) {
		h.block(partOf(part))
	}
	for _, image := range elements(n.Images) {
		h.attach(image)
	}
	for _, raw := range elements(n.Calls) {
		h.block(callOf(raw))
	}
	if isObject(n.Call) {
		h.block(n.call())
	}
}

// block adds a part of the message.
func (h *hearing) block(b *block) {
	switch b.kind {
	case textKind:
		h.text(string(b.text))
	case callKind:
		h.cur.Calls = append(h.cur.Calls, b.call())
	case resultKind:
		h.cur.Results = append(h.cur.Results, sessionlog.ToolResult{CallID: b.id, Output: b.args, IsError: b.failed})
		h.cur.names = append(h.cur.names, b.name)
	case refusalKind, otherKind:
		h.attach(b.raw)
	}
}

// begin begins a message of the history.
func (h *hearing) begin(role string) {
	h.said.New = append(h.said.New, Heard{Role: roleNamed(role)})
	h.cur = &h.said.New[len(h.said.New)-1]
}

func (h *hearing) text(text string) {
	if text != "" {
		h.cur.Texts = append(h.cur.Texts, text)
	}
}

func (h *hearing) attach(raw []byte) {
	if h.cur.Role == RoleUser && len(raw) > 0 {
		h.cur.Attachments = append(h.cur.Attachments, oneLine(raw))
	}
}

// systemMessages takes the system text from the messages that begin the history, where the protocol keeps it there.
func (h *hearing) systemMessages() {
	if h.said.System != "" {
		return
	}
	if h.said.Known == 0 {
		h.l.system = h.said.leadingSystem()
	}
	h.said.System = h.l.system
}

// leadingSystem returns the text of the system's messages that begin the new ones.
func (s *Said) leadingSystem() string {
	var texts []string
	for _, m := range s.New {
		if m.Role != RoleSystem {
			break
		}
		texts = append(texts, m.Texts...)
	}
	return strings.Join(texts, "\n")
}
