package deck

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A talkLane is one lane with a model.
type talkLane struct {
	name        string
	first, last place
	arrival     uint64 // of its first request
	lastArrival uint64 // the highest

	// Of a lane beside the main one, once its first call was read:
	looked bool
	tools  bool          // it declares some
	heard  place         // of its last call so far, and
	call   *tape.LLMCall // that call
}

// survey finds the lanes of a tape, and the main one: the first whose requests declare tools; where none does, the first
// conversation.
func (d *talk) survey() error {
	t, err := tape.Open(d.src.path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer t.Close()
	d.store, d.lanes = t.Store, make(map[string]*talkLane)
	var talking *talkLane
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		k, ok := rec.Kind.(*tape.LLMCall)
		if !ok || unmatched(k) {
			continue
		}
		l := d.lanes[k.Lane]
		if l == nil {
			l = &talkLane{name: k.Lane, first: placeOf(rec), arrival: k.Arrival}
			d.lanes[k.Lane] = l
		}
		l.last, l.lastArrival = placeOf(rec), max(l.lastArrival, k.Arrival)
		if d.main != nil {
			continue
		}
		tools, talks := d.declares(k)
		if talks && talking == nil {
			talking = l
		}
		if tools {
			d.main = l
		}
	}
	if d.main == nil {
		d.main = talking
	}
	return nil
}

// toolKeys are the keys under which protocols declare tools.
var toolKeys = [...][]byte{[]byte(`"tools"`), []byte(`"functions"`), []byte(`"toolConfig"`)}

// declares reports whether a request declares tools, and whether it is one of a conversation at all.
func (d *talk) declares(k *tape.LLMCall) (tools, talks bool) {
	body, err := d.body(k.RequestPayload)
	if err != nil {
		return false, false
	}
	if body, err = exchange.Decode(exchange.HeaderOf(k.RequestHeaders).Get("Content-Encoding"), body, llm.MaxSaid); err != nil {
		return false, false
	}
	plain := *k
	plain.RequestHeaders, plain.Response = nil, nil
	if !llm.Talks(&plain, body) {
		return false, false
	}
	for _, key := range toolKeys {
		if bytes.Contains(body, key) {
			said, err := llm.ReadCall(&plain, body, nil)
			return err == nil && said.Tools, true
		}
	}
	return false, true
}
