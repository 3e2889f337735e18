package scriptedllm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Why an answer ends, in words for all providers; any other word is a provider's own.
const (
	StopEnd    = "end_turn"
	StopTool   = "tool_use"
	StopLength = "max_tokens"
)

// A Completion is an answer that somebody else thought of, for Speak to put on the wire.
type Completion struct {
	Text   string
	Pieces []string // how a stream cuts the text; nil is as it comes
	Calls  []CompletionCall
	Stop   string // "" follows from Calls

	InputTokens, OutputTokens int64
}

// A CompletionCall is a tool call. Arguments is a JSON object, or a JSON string where what the model wrote is no object.
type CompletionCall struct {
	ID, Name  string // an ID of "" is made up
	Arguments json.RawMessage
}

// An Operation is what a request asks for.
type Operation struct {
	Provider, Endpoint string // as on a tape
	Model              string
}

// speakers are the dialects by the names of their operations.
var speakers = map[string]dialect{
	"anthropic messages":                  anthropic{},
	"bedrock converse":                    converse{},
	"bedrock converse-stream":             converse{},
	"bedrock invoke":                      invoke{}, // of Anthropic's models
	"bedrock invoke-with-response-stream": invoke{},
	"gemini generateContent":              gemini{},
	"gemini streamGenerateContent":        gemini{},
	"ollama chat":                         ollama{},
	"openai chat.completions":             chat{},
	"openai responses":                    responses{},
}

func (op Operation) dialect() dialect { return speakers[op.Provider+" "+op.Endpoint] }

// Speaks reports whether Speak has the wire format of an operation.
func Speaks(op Operation) bool { return op.dialect() != nil }

// A Wish is a request that somebody else answers.
type Wish struct {
	Operation
	Request *http.Request
	Body    []byte           // without a Content-Encoding
	Seed    uint64           // of the ids that the answer makes up; equal ones give equal ids. Not 0
	Now     func() time.Time // of the answer; nil is a time of its own
}

func (q *Wish) ids() *ids {
	d := newIDs(q.Seed)
	if q.Now != nil {
		d.now = q.Now
	}
	return d
}

// turn reads what is asked, under whatever path.
func (q *Wish) turn() (dialect, *turn, error) {
	d := q.dialect()
	if d == nil {
		return nil, nil, fmt.Errorf("scriptedllm: the format of %s %s is not spoken", q.Provider, q.Endpoint)
	}
	r, body := q.Request.Clone(q.Request.Context()), q.Body
	switch d.(type) {
	case gemini:
		r.SetPathValue("call", q.Model+":"+q.Endpoint)
	case converse, invoke:
		r.SetPathValue("model", q.Model)
	default:
		body = withModel(body, q.Model) // a path may name it, as Azure's do
	}
	t, err := d.parse(r, body)
	return d, t, err
}

// Streams reports whether a request asks for a stream. The error is that it is not of the operation's format, or that there is
// none (Speaks).
func (q *Wish) Streams() (bool, error) {
	_, t, err := q.turn()
	return err == nil && t.stream, err
}

// Speak answers a request with c, whole or as a stream, as it asks. piece, which may be nil, is told of each piece of a stream's
// text, by its place among c.Pieces, before it is written; of empty ones a provider may leave out all. The error is that of
// Streams; nothing was written then.
func (q *Wish) Speak(w http.ResponseWriter, c *Completion, piece func(i int)) error {
	d, t, err := q.turn()
	if err != nil {
		return err
	}
	s := newSink(w, q.Request, new(Options))
	defer s.end()
	re := &reply{turn: t, answer: c.answer(), ids: q.ids(), inTokens: int(c.InputTokens), chunk: len(c.Text) + 1, piece: piece}
	for _, call := range c.Calls {
		re.chunk = max(re.chunk, len(call.Arguments)+1)
	}
	d.header(w.Header(), re.ids)
	if t.stream {
		d.stream(re, s)
		return nil
	}
	s.json(http.StatusOK, d.whole(re))
	return nil
}

// Fail answers a request with an error in the provider's own shape; that of an operation that is not spoken is
// {"error":{"message":…}}.
func (q *Wish) Fail(w http.ResponseWriter, status int, message string) {
	s := newSink(w, q.Request, new(Options))
	defer s.end()
	if d := q.dialect(); d != nil {
		d.header(w.Header(), q.ids())
		s.json(status, d.failure(status, message))
		return
	}
	s.json(status, object{"error": object{"message": message}})
}

// answer is c as a dialect puts it on the wire.
func (c *Completion) answer() answer {
	a := answer{text: c.Text, given: c}
	for _, x := range c.Calls {
		args := x.Arguments
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		a.calls = append(a.calls, call{id: x.ID, name: x.Name, args: slices.Clone(args)})
	}
	return a
}

// plainText is JSON as text: a string's content, anything else as it stands.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
