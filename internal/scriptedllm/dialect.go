package scriptedllm

import (
	"iter"
	"net/http"
)

// object is a JSON object of an answer.
type object = map[string]any

// A wire is what all endpoints of a provider share.
type wire interface {
	provider() string
	key(r *http.Request) string     // the API key that the request carries, "" for none
	header(h http.Header, ids *ids) // sets what the provider sends with every answer
	failure(status int, message string) object
}

// A dialect is one provider's wire format of generating, both ways.
type dialect interface {
	wire
	parse(r *http.Request, body []byte) (*turn, error)
	whole(re *reply) object    // the answer in one piece
	stream(re *reply, s *sink) // the answer as events
}

// A reply is what a dialect needs to put an answer on the wire.
type reply struct {
	turn     *turn
	answer   answer
	ids      *ids
	chunk    int // runes in one delta
	inTokens int
	piece    func(i int) // is told of a piece of the text before it is sent; nil is nobody
}

// outTokens is the length of the answer in tokens, as far as anyone looks.
func (re *reply) outTokens() int {
	if re.answer.given != nil {
		return int(re.answer.given.OutputTokens)
	}
	n := len(re.answer.text) + len(re.answer.thought)
	for _, c := range re.answer.calls {
		n += len(c.json())
	}
	return n/4 + 1
}

// callID is the id of a tool call: its own, or one that is made up.
func (re *reply) callID(c call, prefix, alphabet string, n int) string {
	if c.id != "" {
		return c.id
	}
	return re.ids.fresh(prefix, alphabet, n)
}

// stop is why the answer ends, in the words of a Completion.
func (re *reply) stop() string {
	switch {
	case re.answer.given != nil && re.answer.given.Stop != "":
		return re.answer.given.Stop
	case len(re.answer.calls) > 0:
		return StopTool
	}
	return StopEnd
}

// textPieces cuts the answer's text into deltas, and says before each which it is.
func (re *reply) textPieces() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, p := range re.texts() {
			re.tell(i)
			if !yield(p) {
				return
			}
		}
	}
}

// texts are the deltas of the answer's text.
func (re *reply) texts() []string {
	if re.answer.given != nil && re.answer.given.Pieces != nil {
		return re.answer.given.Pieces
	}
	return re.pieces(re.answer.text)
}

// tell says that a piece of the text is next.
func (re *reply) tell(i int) {
	if re.piece != nil {
		re.piece(i)
	}
}

// pieces cuts a text into deltas.
func (re *reply) pieces(text string) []string {
	var out []string
	runes := []rune(text)
	for len(runes) > re.chunk {
		out = append(out, string(runes[:re.chunk]))
		runes = runes[re.chunk:]
	}
	return append(out, string(runes))
}
