package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Why an answer ends, in words for all providers; any other word is a provider's own.
const (
	StopEnd    = "end_turn"
	StopTool   = "tool_use"
	StopLength = "max_tokens"
)

// StopWord returns a provider's reason to end in a word for all of them; one that has none as it stands.
func StopWord(reason string) string {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "completed", "complete", "turncomplete", "stop_sequence":
		return StopEnd
	case "tool_calls", "tool_use", "function_call", "toolcall", "tool_call":
		return StopTool
	case "length", "max_tokens", "max_output_tokens":
		return StopLength
	}
	return reason
}

// A Completion is an answer that somebody thought of, to be put on a provider's wire.
type Completion struct {
	Thought string // reasoning before it, where the provider has a place for that
	Text    string
	Pieces  []string // how a stream cuts the text; nil cuts it by Chunk
	Chunk   int      // runes of one piece of what is cut; 0 cuts nothing
	Calls   []CompletionCall
	Stop    string // "" follows from Calls

	InputTokens, OutputTokens int64
}

// A CompletionCall is a tool call. Arguments is a JSON object, or a JSON string where what the model wrote is no object.
type CompletionCall struct {
	ID, Name  string // an ID of "" is made up
	Space     string // the tool's namespace; "" for none
	Arguments json.RawMessage
}

// text is the arguments as the model wrote them.
func (c *CompletionCall) text() string {
	if isText(c.Arguments) {
		return textIn(c.Arguments)
	}
	return string(c.Arguments)
}

// object is a JSON object on its way to a wire.
type wireObject = map[string]any

// A Question is a request whose answer is to be put on the wire.
type Question struct {
	Provider, Endpoint, Model string // as on a tape
	Stream                    bool   // the answer is to come as a stream
	Silent                    bool   // nothing is to be generated: a warm-up
	*Conversation
	Body canonjson.Value

	protocol *protocol
	usage    bool // OpenAI's chat: a stream ends with the usage
	list     bool // Gemini: a stream is a JSON array, not events
}

// Speaks reports whether answers to a call can be put on the wire: whether ReadQuestion knows its protocol. Of Bedrock's InvokeModel that
// holds for Anthropic's models alone, which the request tells.
func Speaks(call *tape.LLMCall) bool {
	if call.Provider == bedrock {
		return strings.HasPrefix(call.Endpoint, "invoke") || strings.HasPrefix(call.Endpoint, "converse")
	}
	p := protocolOf(call, nil)
	return p != nil && p.whole != nil && !strings.HasPrefix(call.Endpoint, "responses.")
}

// ReadQuestion reads a request, whose body has no Content-Encoding. call names its provider, endpoint, model and URL. The error is what
// the provider would find wrong with it, or that Speaks does not hold.
func ReadQuestion(call *tape.LLMCall, body []byte) (*Question, error) {
	q := &Question{Provider: call.Provider, Endpoint: call.Endpoint}
	var err error
	if q.Body, err = canonjson.Parse(body); err != nil {
		return nil, err
	}
	if q.protocol = protocolOf(call, body); q.protocol == nil || q.protocol.stream == nil {
		return nil, fmt.Errorf("the format of %s %s is not spoken", call.Provider, call.Endpoint)
	}
	if q.Model = cmp.Or(call.Model, member(&q.Body, modelKey)); q.Model == "" {
		return nil, errors.New("model: field required")
	}
	request := &tape.LLMCall{Provider: call.Provider, Endpoint: call.Endpoint, Model: q.Model}
	request.URL = call.URL
	if q.Conversation, _, err = ReadConversation(request, body, nil); err != nil {
		return nil, err
	}
	generate := get(&q.Body, "generate")
	if q.Silent = generate != nil && generate.Kind == canonjson.Bool && !generate.Bool; !q.Silent && !q.says() {
		return nil, errors.New("messages: at least one message is required")
	}
	q.settings(call)
	return q, nil
}

// says reports whether anything is asked.
func (q *Question) says() bool {
	for i := range q.Turns {
		if m := &q.Turns[i]; m.Role == RoleTool || len(m.Parts)+len(m.Calls) > 0 {
			return true
		}
	}
	return false
}

// settings reads how the answer is to come.
func (q *Question) settings(call *tape.LLMCall) {
	stream := get(&q.Body, "stream")
	q.Stream = stream != nil && stream.Bool || stream == nil && q.Provider == ollama ||
		strings.Contains(strings.ToLower(q.Endpoint), "stream")
	usage, _ := q.Body.Path("stream_options", "include_usage")
	q.usage = usage.Bool
	u, err := url.Parse(call.URL)
	q.list = q.Provider == gemini && err == nil && u.Query().Get("alt") != "sse"
}

// A Reply is a Completion on its way to the wire.
type Reply struct {
	*Completion
	*Question
	IDs   *IDs        // makes up what the provider would
	Piece func(i int) // is told of each piece of a stream's text before it is sent, by its place; of empty ones a provider may leave out all. nil is nobody
}

// Whole returns the answer in one piece.
func (r *Reply) Whole() []byte { return append(marshal(r.protocol.whole(r)), '\n') }

// Events gives the events of a streamed answer to emit, each with its name, "" for none.
func (r *Reply) Events(emit func(name string, event map[string]any)) { r.protocol.stream(r, emit) }

// Frames gives the answer as a stream to send, event by event, and returns at its end. begin is told the content type before.
func (r *Reply) Frames(begin func(contentType string), send func(frame []byte)) {
	f := r.framing()
	begin(f.contentType)
	n := 0
	r.Events(func(name string, event map[string]any) {
		send(f.frame(n, name, event))
		n++
	})
	if f.end != "" {
		send([]byte(f.end))
	}
}

func (r *Reply) framing() *framing {
	if r.list {
		return &jsonList
	}
	return r.protocol.framing
}

// Write answers a request over HTTP, whole or as a stream, as it asks.
func (r *Reply) Write(w http.ResponseWriter) {
	Header(w.Header(), r.Provider, r.IDs)
	if !r.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(r.Whole()) // who is gone needs no answer
		return
	}
	flush := http.NewResponseController(w)
	r.Frames(func(contentType string) { w.Header().Set("Content-Type", contentType) }, func(frame []byte) {
		_, _ = w.Write(frame)
		_ = flush.Flush()
	})
}

// Header sets what a provider sends with every answer.
func Header(h http.Header, provider string, ids *IDs) {
	if set := providers[provider].header; set != nil {
		set(h, ids)
	}
}

// Failure returns an error in a provider's own shape; {"error":{"message":…}} of one that is not known.
func Failure(provider string, status int, message string) []byte {
	if fail := providers[provider].fail; fail != nil {
		return fail(status, message)
	}
	return marshal(wireObject{"error": wireObject{"message": message}})
}

// stop is why the answer ends.
func (r *Reply) stop() string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.Calls) > 0:
		return StopTool
	}
	return StopEnd
}

// stopIn is stop in the words of a provider: that of an end, of a call and of too long an answer; others stay.
func (r *Reply) stopIn(end, tool, length string) string {
	switch stop := r.stop(); stop {
	case StopEnd:
		return end
	case StopTool:
		return tool
	case StopLength:
		return length
	default:
		return stop
	}
}

// uses are the tool calls as a provider writes them; nil for none.
func (r *Reply) uses(write func(i int, c *CompletionCall) wireObject) (list []wireObject) {
	for i := range r.Calls {
		list = append(list, write(i, &r.Calls[i]))
	}
	return list
}

// callID is the id of a tool call: its own, or one that is made up.
func (r *Reply) callID(c *CompletionCall, prefix string, n int) string {
	if c.ID != "" {
		return c.ID
	}
	return r.IDs.Fresh(prefix, Base62, n)
}

// textPieces cuts the text into deltas, and says before each which it is.
func (r *Reply) textPieces() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, p := range r.texts() {
			if r.tell(i); !yield(p) {
				return
			}
		}
	}
}

// texts are the deltas of the text.
func (r *Reply) texts() []string {
	if r.Pieces != nil {
		return r.Pieces
	}
	return r.pieces(r.Text)
}

// tell says that a piece of the text is next.
func (r *Reply) tell(i int) {
	if r.Piece != nil {
		r.Piece(i)
	}
}

// pieces cuts a text into deltas.
func (r *Reply) pieces(text string) (out []string) {
	runes := []rune(text)
	for r.Chunk > 0 && len(runes) > r.Chunk {
		out = append(out, string(runes[:r.Chunk]))
		runes = runes[r.Chunk:]
	}
	return append(out, string(runes))
}

// seededTime is the time of every answer of a source with a seed.
var seededTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Alphabets of ids.
const (
	Base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	Hexits = "0123456789abcdef"
)

// IDs makes up what providers vary from answer to answer. Several goroutines may use it at once.
type IDs struct {
	Now func() time.Time

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// NewIDs returns a source that repeats itself for a seed other than 0, its time too.
func NewIDs(seed uint64) *IDs {
	if seed == 0 {
		return &IDs{Now: time.Now, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	}
	return &IDs{Now: func() time.Time { return seededTime }, rng: rand.New(rand.NewPCG(seed, seed))}
}

// Fresh returns prefix and n letters of the alphabet.
func (d *IDs) Fresh(prefix, alphabet string, n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := []byte(prefix)
	for range n {
		b = append(b, alphabet[d.rng.IntN(len(alphabet))])
	}
	return string(b)
}
