package deck

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
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
	left   bool          // it was the main one, had come to its end, and the conversation went on in another
	heard  place         // of its last call so far, and
	call   *tape.LLMCall // that call
}

// forget forgets what deriving has found out of a lane: a talk that begins anew reads it again.
func (l *talkLane) forget() {
	l.looked, l.tools, l.left, l.heard, l.call = false, false, false, place{}, nil
}

// A talkSurvey is what is known of the lanes of a tape, as far as it was read.
type talkSurvey struct {
	store   cas.Store
	lanes   map[string]*talkLane
	tooled  *talkLane // the first whose requests declare tools; nil for none
	talking *talkLane // the first conversation; nil for none
}

func newTalkSurvey() *talkSurvey { return &talkSurvey{lanes: make(map[string]*talkLane)} }

// survey finds the lanes of a tape, and the main one: the first whose requests declare tools; where none does, the first
// conversation.
func (d *talk) survey() error {
	t, err := tape.Open(d.src.path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer t.Close()
	d.lanes.store = t.Store
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		d.lanes.see(rec)
	}
	if d.main = d.lanes.tooled; d.main == nil {
		d.main = d.lanes.talking
	}
	return nil
}

// see takes a record. One that was seen before changes nothing.
func (s *talkSurvey) see(rec *tape.Record) {
	k, ok := rec.Kind.(*tape.LLMCall)
	if !ok || unmatched(k) {
		return
	}
	at := placeOf(rec)
	l := s.lanes[k.Lane]
	if l == nil {
		l = &talkLane{name: k.Lane, first: at, arrival: k.Arrival}
		s.lanes[k.Lane] = l
	}
	if at.seq >= l.last.seq {
		l.last = at
	}
	l.lastArrival = max(l.lastArrival, k.Arrival)
	if s.tooled != nil {
		return
	}
	tools, talks := s.declares(k)
	if talks && s.talking == nil {
		s.talking = l
	}
	if tools {
		s.tooled = l
	}
}

// toolKeys are the keys under which protocols declare tools.
var toolKeys = [...][]byte{[]byte(`"tools"`), []byte(`"functions"`), []byte(`"toolConfig"`)}

// declares reports whether a request declares tools, and whether it is one of a conversation at all.
func (s *talkSurvey) declares(k *tape.LLMCall) (tools, talks bool) {
	body, err := bodyIn(s.store, k.RequestPayload)
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
