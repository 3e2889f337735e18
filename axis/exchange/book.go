package exchange

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Book holds the exchanges of a tape and hands each out once. It may be used by several goroutines at once.
type Book struct {
	classifier Classifier
	store      cas.Store
	recorded   []*Recorded     // by arrival; not changed after NewBook
	keys       map[uint64]Key  // by seq, for Audit; not changed after NewBook
	dead       map[string]bool // by host: true while nothing but silence was recorded; not changed after NewBook
	mu         sync.Mutex      // guards what follows
	queues     map[Key]*queue  // of recorded keys alone: what else is asked for leaves nothing behind
	served     map[*Recorded]bool
	damaged    map[*Recorded]error // why an answer could not be given
	log        []service
}

// queue is the recorded exchanges of one key, by arrival. What was handed out may still stand in waiting, or among its
// attempt, until it comes to the front there.
type queue struct {
	all      []*Recorded
	waiting  []*Recorded            // the end of all
	attempts map[string][]*Recorded // the same by attempt; nil where all are of one
	asked    int
}

func (q *queue) add(rec *Recorded) {
	if q.attempts == nil && len(q.all) > 0 && q.all[0].attempt != rec.attempt {
		q.attempts = map[string][]*Recorded{q.all[0].attempt: slices.Clone(q.all)}
	}
	if q.attempts != nil {
		q.attempts[rec.attempt] = append(q.attempts[rec.attempt], rec)
	}
	q.all = append(q.all, rec)
	q.waiting = q.all
}

// take returns the next exchange that is not in served, first of those of the attempt; nil where there is none.
func (q *queue) take(attempt string, served map[*Recorded]bool) *Recorded {
	if left := unserved(q.attempts[attempt], served); len(left) > 0 {
		q.attempts[attempt] = left[1:]
		return left[0]
	}
	if q.waiting = unserved(q.waiting, served); len(q.waiting) > 0 {
		rec := q.waiting[0]
		q.waiting = q.waiting[1:]
		return rec
	}
	return nil
}

// unserved cuts what is in served off the front of a queue.
func unserved(queue []*Recorded, served map[*Recorded]bool) []*Recorded {
	for len(queue) > 0 && served[queue[0]] {
		queue = queue[1:]
	}
	return queue
}

// service says which record was handed out for which key.
type service struct {
	asked Key
	seq   uint64
}

// NewBook reads the exchanges of a tape. Those that a replay refused (lane Unmatched) are no answers and are left out.
// store holds the payloads of the tape; Nearest reads request bodies from it, nil leaves those out that are not inline.
// An error is one that records gave.
func NewBook(records iter.Seq2[*tape.Record, error], c Classifier, store cas.Store) (*Book, error) {
	b := &Book{
		classifier: c, store: store,
		keys: make(map[uint64]Key), dead: make(map[string]bool),
		queues: make(map[Key]*queue), served: make(map[*Recorded]bool), damaged: make(map[*Recorded]error),
	}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if rec := b.read(r); rec != nil && rec.Lane != Unmatched {
			b.recorded = append(b.recorded, rec)
		}
	}
	slices.SortStableFunc(b.recorded, func(x, y *Recorded) int {
		return cmp.Or(cmp.Compare(x.Arrival, y.Arrival), cmp.Compare(x.Seq, y.Seq))
	})
	for _, rec := range b.recorded {
		b.add(rec)
	}
	return b, nil
}

// read returns the exchange that a record holds, nil for none.
func (b *Book) read(r *tape.Record) *Recorded {
	rec := &Recorded{Seq: r.Seq, Exchange: tape.ExchangeOf(r.Kind)}
	if rec.Exchange == nil {
		return nil
	}
	if call, ok := r.Kind.(*tape.LLMCall); ok {
		rec.usage = call.Usage
	}
	RestoreFields(r)
	rec.Key = KeyOf(r.Kind, b.classifier)
	rec.attempt = b.classifier.Attempt(HeaderOf(rec.Exchange.RequestHeaders))
	rec.Lane, rec.Arrival = rec.Exchange.Lane, rec.Exchange.Arrival
	return rec
}

func (b *Book) add(rec *Recorded) {
	q := b.queues[rec.Key]
	if q == nil {
		q = new(queue)
		b.queues[rec.Key] = q
	}
	q.add(rec)
	b.keys[rec.Seq] = rec.Key
	host := tape.HostOf(rec.Exchange.URL)
	if dead, known := b.dead[host]; dead || !known {
		b.dead[host] = silent(rec)
	}
}

// silent reports whether an exchange is one of plain HTTP that no upstream answered. Such a one is a note, never a gate.
func silent(rec *Recorded) bool { return rec.Key.Kind == HTTP && rec.Exchange.Status == 0 }

// take hands out the next recorded exchange of a key, in the order in which the requests arrived while recording; false
// where there is none left. For a request that names its attempt the next one of the same attempt comes first. So of several
// equal callers none gets the failures of another on top of its own, and gives up for it.
func (b *Book) take(k Key, attempt string) (*Recorded, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[k]
	if q == nil {
		return nil, false
	}
	q.asked++
	rec := q.take(attempt, b.served)
	if rec == nil {
		return nil, false
	}
	b.served[rec] = true
	b.log = append(b.log, service{k, rec.Seq})
	return rec, true
}

// Unasked lists, by arrival, what was recorded and not handed out so far. Plain HTTP that no upstream answered while
// recording is left out: it is a note.
func (b *Book) Unasked() []*Recorded {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []*Recorded
	for _, rec := range b.recorded {
		if !b.served[rec] && !silent(rec) {
			left = append(left, rec)
		}
	}
	return left
}

// Audit counts the crossed answers anew, from the log of what was handed out for what: those whose recorded key is not
// the request's, and those handed out before. It must be 0.
func (b *Book) Audit() (crossed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := make(map[uint64]bool, len(b.log))
	for _, s := range b.log {
		if seen[s.seq] || b.keys[s.seq] != s.asked {
			crossed++
		}
		seen[s.seq] = true
	}
	return crossed
}

// DeadHost reports whether the tape holds nothing but unanswered plain HTTP for a host, which stands as in a request's
// URL: with its port where that is not the scheme's own. A request to such a host fails as it did then, by a reset before
// any byte, whatever it holds.
func (b *Book) DeadHost(host string) bool { return b.dead[strings.ToLower(host)] }
