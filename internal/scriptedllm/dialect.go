package scriptedllm

import "net/http"

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
}

// outTokens is the length of the answer in tokens, as far as anyone looks.
func (re *reply) outTokens() int {
	n := len(re.answer.text) + len(re.answer.thought)
	for _, c := range re.answer.calls {
		n += len(c.json())
	}
	return n/4 + 1
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
