package lane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// maxTried is how many messages at most are tried for one request that none fits in all that sets some apart.
const maxTried = 256

// An Item is what a Queue knows of one of its messages. Its zero value is one that nothing is known of.
type Item struct {
	Served bool // it was handed out; guarded by whose the queue is

	traits *Traits        // nil before its queue was studied
	own    map[trait]bool // of traits, what others of the queue have not; nil where it has none, and before
}

func (i *Item) item() *Item { return i }

// Queued is who has an Item in it.
type Queued interface {
	comparable
	item() *Item
}

// IDs are the ids of a message of a queue that was studied.
func (i *Item) IDs() []string { return i.traits.IDTexts() }

// Count is the message's Traits.Count, of a queue that was studied.
func (i *Item) Count() int64 {
	if i.traits == nil {
		return 0
	}
	return i.traits.Count
}

// A Queue is the recorded messages of one key, in the order in which they came, and hands each out once. What was handed out may still
// stand in waiting, or in apart, until it is come upon there. It is guarded by whose it is, but for Study.
type Queue[T Queued] struct {
	All []T
	// Order is that of All.
	Order func(x, y T) int
	// SideBySide says that some of All were under way together while recording.
	SideBySide bool

	waiting []T
	studied sync.Once
	apart   map[trait][]T // by what some of All have and some have not; nil before Study, and where all are alike
}

// Add adds the message that came last.
func (q *Queue[T]) Add(m T) {
	q.All = append(q.All, m)
	q.waiting = append(q.waiting, m)
}

// Study finds out, once, what tells the messages of the queue apart. traits reads those of one.
func (q *Queue[T]) Study(traits func(T) *Traits) {
	q.studied.Do(func() {
		index := make(map[trait][]T)
		for _, m := range q.All {
			m.item().traits = traits(m)
			for t := range m.item().traits.set() {
				if t.kind != saidText || q.SideBySide {
					index[t] = append(index[t], m)
				}
			}
		}
		for t, having := range index {
			if len(having) == len(q.All) {
				delete(index, t)
			}
		}
		if len(index) == 0 {
			return
		}
		q.apart = index
		for _, m := range q.All {
			m.item().own = m.item().traits.set()
			maps.DeleteFunc(m.item().own, func(t trait, _ bool) bool { return index[t] == nil })
		}
	})
}

// Take returns the message that is most like what is asked of those that were not handed out, of equally like ones the
// first; false where there is none. asked is nil for one of which nothing is known but its key.
func (q *Queue[T]) Take(asked *Traits, ids *Names) (m T, ok bool) {
	q.waiting = unserved(q.waiting)
	switch {
	case len(q.waiting) == 0:
		return m, false
	case asked == nil || q.apart == nil:
		return q.waiting[0], true
	}
	s := q.expect(asked, ids)
	if m, ok := q.likest(s); ok {
		return m, true
	}
	first, tried := q.waiting[0], 0
	q.waiting = pass(q.waiting, func(m T) bool {
		tried++
		own := s.foreign(m.item()) == 0
		if own {
			first = m
		}
		return !own && tried < maxTried
	})
	return first, true
}

// Likeness says how like messages of the queue are to what is asked; all are alike where nothing tells them apart.
func (q *Queue[T]) Likeness(asked *Traits, ids *Names) func(T) int {
	if asked == nil || q.apart == nil {
		return func(T) int { return 0 }
	}
	s := q.expect(asked, ids)
	return func(m T) int { return s.likeness(m.item()) }
}

// GiveBack takes back what was handed out.
func (q *Queue[T]) GiveBack(m T) {
	q.waiting = q.insert(q.waiting, m)
	for t := range m.item().own {
		q.apart[t] = q.insert(q.apart[t], m)
	}
}

// insert puts a message where it belongs in a list, unless it is still there.
func (q *Queue[T]) insert(list []T, m T) []T {
	i, _ := slices.BinarySearchFunc(list, m, q.Order)
	if i < len(list) && list[i] == m {
		return list
	}
	return slices.Insert(slices.Clip(list), i, m)
}

// likest returns the first of those that have most of what is expected; false where none has more of it than of another's.
func (q *Queue[T]) likest(s *expected[T]) (best T, ok bool) {
	most, tried := 0, 0
	for _, t := range s.wanted {
		q.apart[t] = pass(q.apart[t], func(m T) bool {
			n := s.likeness(m.item())
			if n > most || n == most && ok && q.Order(m, best) < 0 {
				best, most, ok = m, n, true
			}
			tried++
			return n < s.full && tried < maxTried
		})
		if most == s.full || tried >= maxTried {
			break // who has all that is wanted stands in each of the lists, the first such one first
		}
	}
	return best, ok
}

// unserved cuts what was handed out off the front of a list.
func unserved[T Queued](list []T) []T {
	for len(list) > 0 && list[0].item().Served {
		list = list[1:]
	}
	return list
}

// pass shows the messages of a list that were not handed out, until more says that it has seen enough. What was handed out it
// takes out of the part that it passes, so that nothing is passed twice.
func pass[T Queued](list []T, more func(T) bool) []T {
	kept, passed := 0, 0
	for goOn := true; goOn && passed < len(list); passed++ {
		m := list[passed]
		if m.item().Served {
			continue
		}
		list[kept] = m
		kept++
		goOn = more(m)
	}
	copy(list[passed-kept:passed], list[:kept])
	return list[passed-kept:]
}

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
	// Count is the number that the sender gave the message, which counts those that it sends; 0 where it says nothing. It is no trait of a
	// message that came alone: who has sent one more by then counts on from there.
	Count int64
	// Counter is who counts, in any form that is equal for equal senders.
	Counter string
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

// Names say which id of this run stands for which of the recording: a program that makes ids up makes others in each run, and a match of
// two messages shows which are the same. Its zero value works.
type Names struct {
	recorded map[string]string // by this run's
	replayed map[string]string // by the recording's
}

// Recorded is the recorded id that one of this run stands for: itself, while no match has shown another.
func (n *Names) Recorded(now string) string {
	if was, ok := n.recorded[now]; ok {
		return was
	}
	return now
}

// Replayed is this run's id for a recorded one; known is false while no match has shown it.
func (n *Names) Replayed(was string) (now string, known bool) {
	now, known = n.replayed[was]
	return now, known
}

// Learn notes what a match shows: ids that stand in the same place name the same. Messages with unlike numbers of ids show nothing. What
// was learnt stays, or with anew what is learnt last holds.
func (n *Names) Learn(was, now []string, anew bool) {
	if len(was) != len(now) {
		return
	}
	if n.recorded == nil && len(was) > 0 {
		n.recorded, n.replayed = make(map[string]string), make(map[string]string)
	}
	for i := range was {
		_, known := n.recorded[now[i]]
		_, taken := n.replayed[was[i]]
		if anew || !known && !taken {
			n.recorded[now[i]], n.replayed[was[i]] = was[i], now[i]
		}
	}
}

// Likeness says how many ids of a message are those of a recorded one, less those that are known to be others.
func (n *Names) Likeness(was, now []string) (like int) {
	if len(was) != len(now) {
		return 0
	}
	for i := range was {
		meant, known := n.recorded[now[i]]
		_, taken := n.replayed[was[i]]
		switch {
		case meant == was[i] || !known && now[i] == was[i]:
			like++
		case known || taken:
			like--
		}
	}
	return like
}

// Empty reports whether nothing has been learnt.
func (n *Names) Empty() bool { return len(n.replayed) == 0 }

const (
	// MaxCandidates is how many recorded messages at most are compared with one that was refused.
	MaxCandidates = 16
	// maxNamed is how many differences an explanation names.
	maxNamed = 3
	// maxRefused bounds what is kept of refusals: a program that asks again and again says nothing new.
	maxRefused = 10000
)

// Nearest is the candidate that differs least from what was asked, and in what; of equally near ones the first. diff says what differs, and false of one that cannot be
// compared. Tried are MaxCandidates. False is for none.
func Nearest[T any](candidates []T, diff func(T) ([]fidelity.Change, bool)) (nearest T, least []fidelity.Change, ok bool) {
	for _, c := range candidates[:min(len(candidates), MaxCandidates)] {
		changes, comparable := diff(c)
		if comparable && (!ok || len(changes) < len(least)) {
			nearest, least, ok = c, changes, true
		}
	}
	return nearest, least, ok
}

// Differences says in one line what differs; none where nothing does.
func Differences(changes []fidelity.Change, none string) string {
	if len(changes) == 0 {
		return none
	}
	var named []string
	for _, c := range changes[:min(len(changes), maxNamed)] {
		named = append(named, oneLine(&c))
	}
	text := "differs in " + strings.Join(named, "; ")
	if left := len(changes) - maxNamed; left > 0 {
		text += fmt.Sprintf("; and %d more", left)
	}
	return text
}

// oneLine describes one change.
func oneLine(c *fidelity.Change) string {
	switch c.Op {
	case fidelity.Added:
		return fmt.Sprintf("%s: %s", c.Heading(), c.Now)
	case fidelity.Removed:
		return fmt.Sprintf("%s: %s", c.Heading(), c.Was)
	case fidelity.Changed:
		return fmt.Sprintf("%s: %s -> %s", c.Heading(), c.Was, c.Now)
	}
	return c.Heading()
}

// Times says how often, for people.
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Refused keeps what was refused, in the order in which it came, up to a bound. Its zero value works; it may be used by several
// goroutines at once.
type Refused[T any] struct {
	mu  sync.Mutex
	all []T
}

// Add keeps one.
func (r *Refused[T]) Add(t T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < maxRefused {
		r.all = append(r.all, t)
	}
}

// All lists what was kept.
func (r *Refused[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]T(nil), r.all...)
}
