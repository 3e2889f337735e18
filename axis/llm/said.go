package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
	request, err := exchange.Decode(headerOf(call.RequestHeaders, "Content-Encoding"), request, MaxSaid)
	if err != nil {
		return nil, fmt.Errorf("its request: %w", err)
	}
	t := tongueOf(call, request)
	if t == nil {
		return nil, ErrNoTalk
	}
	said := &Said{Protocol: t.protocol, Model: call.Model}
	if err := l.request(t, request, said); err != nil {
		return nil, fmt.Errorf("its request: %w", err)
	}
	if call.Status != 0 && call.Status != http.StatusOK && call.Status != http.StatusSwitchingProtocols {
		return said, nil
	}
	cut := call.Error != ""
	if response, err = exchange.DecodeCut(headerOf(call.ResponseHeaders, "Content-Encoding"), response, MaxSaid, cut); err != nil {
		return nil, fmt.Errorf("its answer: %w", err)
	}
	said.Answer = l.answer(t, response)
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

// headerOf returns the value of a header of a record.
func headerOf(fields []tape.HeaderField, name string) string {
	for i := range fields {
		if http.CanonicalHeaderKey(fields[i].Name) == name {
			return fields[i].Value
		}
	}
	return ""
}

// A tongue is how a protocol writes a conversation.
type tongue struct {
	protocol string // as a provider_replay names it
	messages string // the key of the list of messages
	wrapped  string // the key of the object in which all of it stands; "" for none
	// top reads the value of another key of the request, and reports whether it did.
	top func(h *hearing, key []byte) bool
	// message reads one message of the list.
	message func(h *hearing)
	// event reads one JSON text of an answer: all of it, or one event of a stream.
	event func(a *answering)
	// unpack returns the text that a text of an answer wraps; nil for none.
	unpack func(text []byte) []byte
}

// tongueOf returns how a call's conversation is written; nil where it has none.
func tongueOf(call *tape.LLMCall, request []byte) *tongue {
	if call.Provider == bedrock {
		return bedrockTongue(call, request)
	}
	if call.Provider == cohere && strings.Contains(call.URL, "/v1/") {
		return cohereFirstTongue
	}
	return tongues[call.Provider+" "+call.Endpoint]
}

// tongues are those of the endpoints, by provider and name. Bedrock's follow from the request.
var tongues = map[string]*tongue{
	anthropic + " messages":           anthropicTongue,
	anthropic + " rawPredict":         anthropicTongue,
	anthropic + " streamRawPredict":   anthropicTongue,
	anthropic + " complete":           prompted(anthropicTongue),
	openAI + " chat.completions":      chatTongue,
	openAI + " completions":           prompted(chatTongue),
	openAI + " responses":             responsesTongue,
	openAI + " responses.compact":     responsesTongue,
	openAI + " responses.ws":          responsesTongue,
	openAI + " realtime":              realtimeTongue,
	gemini + " generateContent":       geminiTongue,
	gemini + " streamGenerateContent": geminiTongue,
	gemini + " BidiGenerateContent":   liveTongue,
	ollama + " chat":                  ollamaTongue,
	ollama + " generate":              prompted(ollamaTongue),
	cohere + " chat":                  cohereTongue,
}

// prompted returns the tongue of a protocol's endpoint that is given one prompt in the place of messages.
func prompted(t *tongue) *tongue {
	out := *t
	out.messages = "prompt"
	out.message = func(h *hearing) { h.s.Skip() }
	return &out
}

// Talks reports whether a call, whose request stands in body without its Content-Encoding, is one of a conversation.
func Talks(call *tape.LLMCall, body []byte) bool { return tongueOf(call, body) != nil }
