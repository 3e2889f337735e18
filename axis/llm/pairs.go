package llm

import (
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// pairs numbers the ids that pair calls of tools with their results by their first appearance in a conversation: which
// call a result belongs to counts, what a server or an SDK made up to say so does not. The numbers of a conversation's
// beginning stay as it grows. The zero pairs is ready.
type pairs struct {
	seen map[string]int
}

// number replaces the id under key by its number.
func (p *pairs) number(v *canonjson.Value, key string) {
	id := get(v, key)
	if id == nil || id.Kind != canonjson.String || id.Str == "" {
		return
	}
	n, ok := p.seen[id.Str]
	if !ok {
		if p.seen == nil {
			p.seen = make(map[string]int)
		}
		n = len(p.seen) + 1
		p.seen[id.Str] = n
	}
	id.Str = "#" + strconv.Itoa(n)
}
