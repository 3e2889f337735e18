package exchange

// Traits are what tells requests of one Key apart, in which nothing of it shows: a mask took it out, or it stands in a
// header. They decide which of several recorded answers to a key a request gets, never whether it gets one.
type Traits struct {
	// IDs are, in order, the ids that stand in the URL, the body and the headers, each a value that names something: a
	// UUID, what a provider made up, the placeholder of a secret. Never a time. A program that makes ids up makes others on
	// a replay.
	IDs []string
	// Texts are the headers as they compare, masked and renumbered, and how often the sender has tried before.
	Texts []string
}

// What one trait counts. All texts together, of which there are fewer than an id counts, count less than an id: who asks
// goes before how.
const (
	countID   = 1 << 10
	countText = 1
)

// trait is one entry of Traits as the index of a queue has it.
type trait struct {
	id   bool
	text string
}

// names says which id of the replay stands for which of the recording: a match of two requests shows it.
type names struct {
	recorded map[string]string // by the replay's
	replayed map[string]string // by the recording's
}

// of returns the recorded id that one of a request stands for: itself, while no match has shown another.
func (n *names) of(id string) string {
	if was, ok := n.recorded[id]; ok {
		return was
	}
	return id
}

// learn notes what a match shows: ids that stand in the same place name the same. Requests with unlike numbers of ids
// show nothing, and what was learnt stays.
func (n *names) learn(asked, recorded *Traits) {
	if len(asked.IDs) != len(recorded.IDs) {
		return
	}
	for i, was := range recorded.IDs {
		now := asked.IDs[i]
		_, known := n.recorded[now]
		_, taken := n.replayed[was]
		if known || taken {
			continue
		}
		if n.recorded == nil {
			n.recorded, n.replayed = make(map[string]string), make(map[string]string)
		}
		n.recorded[now], n.replayed[was] = was, now
	}
}

// sought is what a request asks of a queue.
type sought struct {
	wanted []trait         // what sets some of the queue's records apart, ids first
	full   int             // what all of these count
	own    map[string]bool // the ids of the request, as it has them
	names  *names
}

// seek prepares a request for the queue.
func (q *queue) seek(asked *Traits, n *names) *sought {
	s := &sought{own: make(map[string]bool, len(asked.IDs)), names: n}
	for _, id := range asked.IDs {
		if !s.own[id] {
			s.own[id] = true
			s.want(q, trait{id: true, text: n.of(id)}, countID)
		}
	}
	for _, text := range asked.Texts {
		s.want(q, trait{text: text}, countText)
	}
	return s
}

func (s *sought) want(q *queue, t trait, count int) {
	if len(q.apart[t]) > 0 {
		s.wanted = append(s.wanted, t)
		s.full += count
	}
}

// likeness says how like a record is to what is sought; above 0 it has more of it than it has of another's.
func (s *sought) likeness(rec *Recorded) int {
	n := 0
	for _, t := range s.wanted {
		switch {
		case !rec.has[t]:
		case t.id:
			n += countID
		default:
			n += countText
		}
	}
	return n - countID*s.foreign(rec)
}

// foreign counts the ids of a record that are known to name what the request does not speak of, by that name or by the
// recorded one, which a secret takes on (Open.recall).
func (s *sought) foreign(rec *Recorded) int {
	n := 0
	for _, was := range rec.traits.IDs {
		if now, known := s.names.replayed[was]; known && !s.own[now] && !s.own[was] {
			n++
		}
	}
	return n
}
