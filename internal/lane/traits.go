package lane

import (
	"cmp"
	"slices"
)

// Traits are what tells messages of one key apart, in which nothing of it shows: a mask took it out, or it stands in a
// header. They decide which of several recorded answers to a key a message gets, never whether it gets one.
type Traits struct {
	// IDs are, in order, the ids that stand in the URL, the body and the headers, each a value that names something: a
	// UUID, what a provider made up, the placeholder of a secret. Never a time. A program that makes ids up makes others on
	// a replay.
	IDs []ID
	// Texts are what else may tell callers apart that ask side by side: each header as it compares, masked and renumbered, and
	// the times that masks took out, with their place. Of callers that ask one after another they tell nothing: a header may
	// hold what is drawn at random from a few, a date that of another day.
	Texts []string
	// Attempt is how often the sender has tried before, in any form that is equal for equal attempts; "" where it says nothing.
	Attempt string
}

// An ID is one of Traits.
type ID struct {
	Place string // where it stands, in any form that is equal for equal places
	Text  string
}

// What one trait counts: an id, in its place or in any, more than all texts together, of which there are fewer than it counts.
// Who asks goes before how.
const (
	countID   = 1 << 10
	countText = 1
)

// Bounds of what is looked at, for whoever makes a tape or a request decides how much there is.
const (
	maxIDs    = 1024 // of a request: half of them its first, half its last
	maxWanted = 128  // traits of a request that set records apart
)

// trait is one entry of Traits as the index of a queue has it.
type trait struct {
	kind        traitKind
	place, text string
}

type traitKind uint8

const (
	anywhere traitKind = iota // an id
	inPlace                   // an id, and where it stands
	saidText
	saidAttempt
)

// set is what t holds, each once.
func (t *Traits) set() map[trait]bool {
	set := make(map[trait]bool)
	for _, id := range t.IDs {
		set[trait{kind: anywhere, text: id.Text}] = true
		set[trait{inPlace, id.Place, id.Text}] = true
	}
	for _, text := range t.Texts {
		set[trait{kind: saidText, text: text}] = true
	}
	set[trait{kind: saidAttempt, text: t.Attempt}] = true
	return set
}

// Bounded cuts the middle out of more ids than are looked at. Requests of one key have as many in the same places.
func (t *Traits) Bounded() *Traits {
	if len(t.IDs) > maxIDs {
		t.IDs = slices.Concat(t.IDs[:maxIDs/2], t.IDs[len(t.IDs)-maxIDs/2:])
	}
	return t
}

// IDTexts are the ids without their places.
func (t *Traits) IDTexts() []string {
	texts := make([]string, len(t.IDs))
	for i, id := range t.IDs {
		texts[i] = id.Text
	}
	return texts
}

// expected is what a request asks of a queue.
type expected[T Queued] struct {
	wanted []trait         // what sets some of the queue's records apart, what the fewest have first
	full   int             // what all of these count
	own    map[string]bool // the ids of the request, as it has them
	ids    *Names
}

// expect prepares a request for the queue.
func (q *Queue[T]) expect(asked *Traits, ids *Names) *expected[T] {
	s := &expected[T]{own: make(map[string]bool, len(asked.IDs)), ids: ids}
	for _, id := range asked.IDs {
		s.own[id.Text] = true
		was := ids.Recorded(id.Text)
		s.want(q, trait{inPlace, id.Place, was}, countID)
		s.want(q, trait{kind: anywhere, text: was}, countID)
	}
	s.want(q, trait{kind: saidAttempt, text: asked.Attempt}, countText)
	for _, text := range asked.Texts {
		s.want(q, trait{kind: saidText, text: text}, countText)
	}
	slices.SortStableFunc(s.wanted, func(x, y trait) int { return cmp.Compare(len(q.apart[x]), len(q.apart[y])) })
	return s
}

// want adds what waiting records have, unless it is there already: an id may stand twice, and two may stand for one.
func (s *expected[T]) want(q *Queue[T], t trait, count int) {
	list := q.apart[t]
	if len(list) == 0 || len(s.wanted) == maxWanted || slices.Contains(s.wanted, t) {
		return
	}
	if list = unserved(list); len(list) > 0 {
		s.wanted = append(s.wanted, t)
		s.full += count
	}
	q.apart[t] = list
}

// likeness says how like a record is to what is expected; above 0 it has more of it than it has of another's.
func (s *expected[T]) likeness(i *Item) int {
	n := 0
	for _, t := range s.wanted {
		switch {
		case !i.own[t]:
		case t.kind <= inPlace:
			n += countID
		default:
			n += countText
		}
	}
	return n - countID*s.foreign(i)
}

// foreign counts the ids of a record, of those that set it apart, that are known to name what the request does not speak of,
// by that name or by the recorded one, which a secret takes on.
func (s *expected[T]) foreign(i *Item) int {
	n := 0
	for t := range i.own {
		if now, known := s.ids.Replayed(t.text); t.kind == anywhere && known && !s.own[now] && !s.own[t.text] {
			n++
		}
	}
	return n
}
