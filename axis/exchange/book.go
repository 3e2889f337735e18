package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Book holds the exchanges of a tape and hands each out once. It may be used by several goroutines at once.
type Book struct {
	classifier Classifier
	store      cas.Store
	recorded   []*Recorded                // by arrival; not changed after NewBook
	keys       map[uint64]Key             // by seq, for Audit; not changed after NewBook
	dead       map[string]bool            // by host: true while nothing but silence was recorded; not changed after NewBook
	queues     map[Key]*queue             // of recorded keys alone; the map is not changed after NewBook
	sockets    map[uint64]*RecordedSocket // by connection; not changed after NewBook
	ignored    map[uint64]bool            // connections of sockets that MCP servers opened; not changed after NewBook
	methods    map[Key]*method            // by method and URL; not changed after NewBook
	wholes     map[Key][]*Recorded        // by what was asked, to the byte: requests that differ in their headers; not changed after NewBook
	groups     func() groups              // of recorded, made once something is asked for that is not on the tape
	mixed      bool                       // a queue holds requests that may have unlike traits; not changed after NewBook
	run        sidetraffic.Span           // when it was; not changed after NewBook
	took       time.Duration              // until its last record; not changed after NewBook
	order      *EndOrder                  // nil where none is kept; not changed once requests come
	side       *side                      // nil where no side traffic is told from other; not changed once requests come
	alike      bool                       // see AnswerAlike; not changed once requests come
	fork       *Fork                      // nil where all of the tape answers; not changed once requests come
	mu         sync.Mutex                 // guards what follows, and the queues but for their study
	ids        lane.Names
	ahead      map[string]int64    // by how much a sender has counted further than then, see Traits.Count
	given      []*happening        // ends of processes, and wakings of threads; not changed after KeepOrder
	told       map[uint64]bool     // by spawn_id: it has no timers of its own, see newEndOrder; likewise
	forked     map[uint64]uint64   // parents of what executed nothing, likewise
	waiting    []*Recorded         // of recorded, less some from its front that were handed out
	damaged    map[*Recorded]error // why an answer could not be given
	log        []service
}

// service says which record was handed out for which key.
type service struct {
	asked Key
	seq   uint64
}

// NewBook reads the exchanges of a tape. Those that a replay refused (lane Unmatched) are no answers and are left out,
// and so is what MCP servers asked (tape.OriginOf).
// store holds the payloads of the tape; Nearest reads request bodies from it, nil leaves those out that are not inline.
// An error is one that records gave.
func NewBook(records iter.Seq2[*tape.Record, error], c Classifier, store cas.Store) (*Book, error) {
	b := &Book{
		forked: make(map[uint64]uint64), told: make(map[uint64]bool),
		classifier: c, store: store, ahead: make(map[string]int64),
		keys: make(map[uint64]Key), ignored: make(map[uint64]bool), dead: make(map[string]bool),
		queues: make(map[Key]*queue), methods: make(map[Key]*method), sockets: make(map[uint64]*RecordedSocket), wholes: make(map[Key][]*Recorded), damaged: make(map[*Recorded]error),
	}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		b.run.Add(r.VirtualTimeMS)
		b.took = max(b.took, time.Duration(r.MonotonicMS)*time.Millisecond)
		b.keepProcess(r)
		if rec := b.read(r); rec != nil && rec.Lane != Unmatched {
			b.recorded = append(b.recorded, rec)
		}
	}
	b.sortSockets()
	slices.SortStableFunc(b.recorded, byArrival)
	b.waiting = b.recorded
	b.groups = sync.OnceValue(func() groups { return groupsOf(b.recorded) })
	b.noteCalls()
	for _, rec := range b.recorded {
		b.add(rec)
	}
	for _, q := range b.queues {
		b.mixed = b.mixed || q.mixed()
		q.SideBySide = q.overlap()
		findEquals(q.All)
	}
	return b, nil
}

// read returns the exchange that a record holds, nil for none.
func (b *Book) read(r *tape.Record) *Recorded {
	if b.ofServer(r.Kind) {
		return nil
	}
	x := tape.ExchangeOf(r.Kind)
	if x == nil {
		return b.readSocket(r)
	}
	rec := &Recorded{
		Seq: r.Seq, Exchange: x, extra: *tape.Extras(r.Kind), Length: lengthOf(*tape.Extras(r.Kind)), Trailers: trailersOf(*tape.Extras(r.Kind)), after: afterOf(*tape.Extras(r.Kind)),
		endedMS: r.MonotonicMS, wallMS: r.VirtualTimeMS, g: r.G,
	}
	if call, ok := r.Kind.(*tape.LLMCall); ok {
		rec.usage = call.Usage
	}
	restoreHeaders(r)
	rec.Key = KeyOf(r.Kind, b.classifier)
	rec.Lane, rec.Arrival = rec.Exchange.Lane, rec.Exchange.Arrival
	if call, ok := r.Kind.(*tape.LLMCall); ok && call.Connection != 0 && rec.Lane != Unmatched {
		rec.opcode = opcodeOf(call.Opcode)
		if s := b.sockets[call.Connection]; s != nil {
			s.addTurn(rec, call.Extra)
		}
	}
	return rec
}

// ofServer reports whether a record is of what an MCP server asked: on a replay none runs, and its answers are not the program's.
func (b *Book) ofServer(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.WSOpen:
		if tape.OriginOf(k) != 0 {
			b.ignored[cmp.Or(k.Connection, k.Arrival)] = true
		}
	case *tape.WSMessage:
		return b.ignored[k.Connection]
	case *tape.WSClose:
		return b.ignored[k.Connection]
	case *tape.LLMCall:
		if k.Connection != 0 && b.ignored[k.Connection] {
			return true
		}
	}
	return tape.OriginOf(k) != 0
}

func (b *Book) add(rec *Recorded) {
	q := b.queues[rec.Key]
	if q == nil {
		q = newQueue()
		b.queues[rec.Key] = q
	}
	q.Add(rec)
	b.keys[rec.Seq] = rec.Key
	b.addWhole(rec)
	host := tape.HostOf(rec.Exchange.URL)
	if dead, known := b.dead[host]; dead || !known {
		b.dead[host] = silent(rec)
	}
}

// maxAlike bounds how many requests are held that differ in nothing but their headers.
const maxAlike = 8

// addWhole notes a request that is on the tape as it was asked.
func (b *Book) addWhole(rec *Recorded) {
	x := rec.Exchange
	if rec.Key.Socket || rec.Key.Stream || fieldValue(x.RequestHeaders, "Content-Encoding") != "" || tape.FieldValue(rec.extra, "request_lost") != nil {
		return
	}
	w := Key{Method: x.Method, URL: x.URL, Request: cas.Sum(nil)}
	if x.RequestPayload != nil {
		w.Request = x.RequestPayload.Hash
	}
	all := b.wholes[w]
	if len(all) < maxAlike && !slices.ContainsFunc(all, func(r *Recorded) bool { return slices.Equal(r.Exchange.RequestHeaders, x.RequestHeaders) }) {
		b.wholes[w] = append(all, rec)
	}
}

// identify notes which of those that a request is like, whose header is recorded so, it stands as on the tape, with this Key.
func identify(like []*Recorded, headers []tape.HeaderField, k Key) {
	for _, rec := range like {
		if rec.Key == k && slices.Equal(rec.Exchange.RequestHeaders, headers) {
			rec.identified.Store(true)
		}
	}
}

// like lists recorded requests that differ from r in nothing but the header; none where there is no Book.
func (b *Book) like(r *Request) []*Recorded {
	if b == nil || len(r.Header["Content-Encoding"]) > 0 {
		return nil
	}
	return b.wholes[Key{Method: r.Method, URL: r.URL, Request: cas.Sum(r.Body)}]
}

// silent reports whether an exchange is one of plain HTTP that no upstream answered.
func silent(rec *Recorded) bool { return rec.Key.Kind == HTTP && rec.Exchange.Status == 0 }

// isNote reports whether an exchange is a note, never a gate: a silent one, and a refused upgrade.
func isNote(rec *Recorded) bool { return silent(rec) || rec.Exchange.UpgradeRefused() }

// traits returns what a request is asked by beside its key; nil where no queue of the book needs it. It must stand before
// take, and not under a lock: it reads the bodies of recorded requests.
func (b *Book) traits(k Key, r *Request) *Traits {
	q := b.queues[k]
	if q == nil || !b.mixed {
		return nil
	}
	q.Study(func(rec *Recorded) *Traits { return b.classifier.Traits(b.request(rec)).Bounded() })
	return b.classifier.Traits(r).Bounded()
}

// request returns a recorded request in the form that a Classifier is given. A body that cannot be had is none.
func (b *Book) request(rec *Recorded) *Request {
	r := b.askedBy(rec)
	r.Body = b.body(rec)
	return r
}

// askedBy is request without the body.
func (b *Book) askedBy(rec *Recorded) *Request {
	h := HeaderOf(rec.Exchange.RequestHeaders)
	h.Del("Content-Encoding")
	return &Request{Method: rec.Exchange.Method, URL: rec.Exchange.URL, Header: h}
}

// take hands out a recorded exchange of a key: the one most like the request by its traits, of equally like ones the next in
// the order in which the requests arrived while recording; nil where there is none left. Of a socket that may still become
// another one it returns the choice.
func (b *Book) take(k Key, asked *Traits) (*Recorded, *choice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[k]
	if q == nil {
		return nil, nil
	}
	q.asked++
	rec, ok := q.Take(asked, &b.ids)
	if !ok {
		return nil, nil
	}
	rec = b.counted(q, rec, asked)
	rec.Served = true
	if rec.Socket != nil {
		if c := b.choose(rec, q, asked); c != nil {
			return rec, c
		}
	}
	b.hand(rec, asked)
	return rec, nil
}

// counted is which of the equal requests that were under way together with one is meant: threads, and connections, bring them in any order, and their
// sender has counted them. The caller holds mu.
func (b *Book) counted(q *queue, rec *Recorded, asked *Traits) *Recorded {
	if rec.equals == nil || asked == nil || asked.Count == 0 {
		return rec
	}
	was, like := asked.Count-b.ahead[asked.Counter], q.Likeness(asked, &b.ids)
	for _, m := range rec.equals.members {
		if !m.Served && m.Count() == was && m.span().beside(rec.span()) && like(m) == like(rec) {
			return m
		}
	}
	return rec
}

// hand notes what was handed out for a request. The caller holds mu.
func (b *Book) hand(rec *Recorded, asked *Traits) {
	if asked != nil && asked.Count != 0 && rec.Count() != 0 && rec.equals == nil {
		b.ahead[asked.Counter] = asked.Count - rec.Count()
	}
	if asked != nil {
		b.ids.Learn(rec.IDs(), asked.IDTexts(), false)
	}
	if c := rec.equals; c != nil {
		c.gate.Happened(moment{kind: momentGiven, n: c.given.Add(1)})
	}
	rec.order.happened(moment{kind: momentAsked, rec: rec})
	b.log = append(b.log, service{rec.Key, rec.Seq})
}

// takeThis hands out an exchange that is known to be meant, under its own key; false where it was before.
func (b *Book) takeThis(rec *Recorded) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rec.Served {
		return false
	}
	rec.Served = true
	b.hand(rec, nil)
	return true
}

// likeAsked returns what answers a request whose key has nothing left: that an upgrade is refused, as recorders did that carried no
// WebSockets, and as an upstream does that wants to be asked by HTTP; the same call with results in another order; or what answers side
// traffic. Nil for nothing.
func (b *Book) likeAsked(id *Identity, r *Request) *Recorded {
	if q := b.queues[id.Key]; q != nil && !slices.ContainsFunc(q.All, func(rec *Recorded) bool { return !rec.Exchange.UpgradeRefused() }) {
		return q.All[len(q.All)-1]
	}
	if rec := b.reordered(id, r); rec != nil && b.takeThis(rec) {
		return rec
	}
	for rec := b.inShape(id, r); rec != nil; rec = b.inShape(id, r) {
		if b.takeThis(rec) { // else another request took it meanwhile
			return rec
		}
	}
	if b.fork.sends() {
		return nil
	}
	rec := b.side.answer(b, id.Key, r)
	if rec == nil && id.Key.Kind == LLM {
		b.order.giveUp()
	}
	return rec
}

// next returns the first by arrival that was not handed out and is no socket; nil for none.
func (b *Book) next() *Recorded {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) > 0 && (b.waiting[0].Served || b.waiting[0].Socket != nil) {
		b.waiting = b.waiting[1:]
	}
	if len(b.waiting) == 0 {
		return nil
	}
	return b.waiting[0]
}

// Unasked lists, by arrival, what was recorded and not handed out so far. Plain HTTP that no upstream answered while
// recording is left out, and so are refused upgrades (tape.Exchange.UpgradeRefused): they are notes.
func (b *Book) Unasked() []*Recorded {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []*Recorded
	for _, rec := range b.recorded {
		if !rec.Served && !isNote(rec) {
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

// Took is how long the recorded run had gone on when its last record was made.
func (b *Book) Took() time.Duration { return b.took }

// DeadHost reports whether the tape holds nothing but unanswered plain HTTP for a host, which stands as in a request's
// URL: with its port where that is not the scheme's own. A request to such a host fails as it did then, by a reset before
// any byte, whatever it holds.
func (b *Book) DeadHost(host string) bool { return b.dead[strings.ToLower(host)] }

// Damage says that the answer that rec holds could not be given whole, for its payload is missing or damaged or was never
// kept. What the program does then says nothing about the program. What it returns says so to who asked.
func (b *Book) Damage(rec *Recorded, err error) *DamagedError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.damaged[rec] == nil {
		b.damaged[rec] = err
	}
	return &DamagedError{Method: rec.Exchange.Method, URL: rec.Exchange.URL, Seq: rec.Seq, Err: err}
}

// Damaged lists, by arrival, the answers that Damage was told of, for people: each text names the record, the payload's
// hash where it has one, and what is wrong with it. A replay with such an answer cannot be compared.
func (b *Book) Damaged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, rec := range b.recorded {
		if err := b.damaged[rec]; err != nil {
			answer := "its answer"
			if p := rec.Exchange.Response; p != nil {
				answer += ", payload " + p.Hash.Short() + ","
			}
			texts = append(texts, fmt.Sprintf("%s: %s could not be given to %s %s: %v", nameOf(rec), answer, rec.Exchange.Method, rec.Exchange.URL, err))
		}
	}
	return texts
}

// keepProcess notes a process whose end may have decided what the program, which none has started, saw. One that has executed nothing is
// its parent, and MCP servers do not run on a replay.
func (b *Book) keepProcess(r *tape.Record) {
	p, ok := r.Kind.(*tape.ProcessSpawn)
	if ok && !tape.HasFlag(p, tape.OwnTicksKey) {
		b.told[p.SpawnID] = true
	}
	if ok {
		var at []uint64
		_ = json.Unmarshal(tape.FieldValue(p.Extra, tape.WokeKey), &at) // none where it is missing
		for n, g := range at {
			b.given = append(b.given, wakeHappening(p.SpawnID, n+1, g))
		}
	}
	if !ok || p.SpawnID == 0 || p.ParentSpawnID == 0 || r.G == 0 || tape.OriginOf(p) != 0 {
		return
	}
	if tape.HasFlag(p, tape.ForkedKey) {
		b.forked[p.SpawnID] = p.ParentSpawnID
		return
	}
	over := cmp.Or(numberIn(p.Extra, tape.OverKey), r.G)
	b.given = append(b.given, processHappening(p.SpawnID, p.ParentSpawnID, numberIn(p.Extra, placeKey), over, r.MonotonicMS, p.DurationMS))
}

type (
	// Traits tell requests of one Key apart.
	Traits = lane.Traits
	// An ID is one of them.
	ID = lane.ID
)

// queue is the recorded exchanges of one key, by arrival.
type queue struct {
	lane.Queue[*Recorded]
	asked int
}

func newQueue() *queue { return &queue{Queue: lane.Queue[*Recorded]{Order: byArrival}} }

// byArrival orders records as their requests came.
func byArrival(x, y *Recorded) int {
	return cmp.Or(cmp.Compare(x.Arrival, y.Arrival), cmp.Compare(x.Seq, y.Seq))
}

// before reports whether x arrived before y.
func before(x, y *Recorded) bool { return byArrival(x, y) < 0 }

// mixed reports whether the requests of the queue may have unlike traits. It reads no payload.
func (q *queue) mixed() bool {
	first := q.All[0].Exchange
	for _, rec := range q.All[1:] {
		x := rec.Exchange
		if x.URL != first.URL || !x.RequestPayload.Same(first.RequestPayload) ||
			!slices.Equal(x.RequestHeaders, first.RequestHeaders) {
			return true
		}
	}
	return false
}

// overlap reports whether some of the requests were under way together: one arrived later than another and ended before it, or
// before it ended, as far as the tape tells.
func (q *queue) overlap() bool {
	var lastG uint64
	var lastEnd int64
	for _, rec := range q.All { // by arrival
		if rec.arrived() < lastG || rec.begun() < lastEnd {
			return true
		}
		lastG, lastEnd = max(lastG, rec.g), max(lastEnd, rec.endedMS)
		if s := rec.Socket; s != nil && s.ended {
			lastG, lastEnd = max(lastG, s.end.At), max(lastEnd, s.endMS)
		}
	}
	return false
}

// CallOf says how much of a recorded call had come when its answer ended.
func (b *Book) CallOf(rec *Recorded) Call {
	_, messages := b.messages(rec)
	if rec.after == nil {
		return Call{Steps: messages + 1, Ended: true}
	}
	steps := rec.after[len(rec.after)-1]
	return Call{Steps: max(steps, messages), Ended: steps > messages}
}

// noteCalls finds the calls that were answered while their request still came. Those of the same method are known by their first
// message.
func (b *Book) noteCalls() {
	for _, rec := range b.recorded {
		key := Key{Method: rec.Key.Method, URL: rec.Key.URL}
		m := b.methods[key]
		if m == nil {
			m = new(method)
			b.methods[key] = m
		}
		m.streams = m.streams || rec.after != nil
		m.eager = m.eager || rec.after != nil && rec.after[0] == 0
		m.patience = max(m.patience, rec.Patience(0))
	}
	for _, rec := range b.recorded {
		if rec.Key.Kind != HTTP || !b.methods[Key{Method: rec.Key.Method, URL: rec.Key.URL}].streams {
			continue
		}
		r := b.askedBy(rec)
		if rec.after == nil || rec.after[0] > 0 { // else it was answered before its first message
			r.Body, _ = b.messages(rec)
		}
		if id, err := b.classifier.Classify(r); err == nil { // else it is asked for by nobody
			rec.Key = id.Key
			rec.Key.Stream = true
		}
	}
}

// Fork divides the book before its first request, and before KeepOrder. seq is of the record of the first exchange that does not answer.
// The error says that it is none that could.
func (b *Book) Fork(seq uint64, o ForkOptions) (*Fork, error) {
	i := slices.IndexFunc(b.recorded, func(rec *Recorded) bool { return rec.Seq == seq })
	if i < 0 || b.recorded[i].Socket != nil || b.recorded[i].Key.Socket {
		return nil, fmt.Errorf("record %d was not asked for by a request of its own: a WebSocket cannot be left in its middle", seq)
	}
	at := b.recorded[i]
	for _, rec := range b.recorded {
		if !before(rec, at) && !strings.HasPrefix(rec.Lane, "mcp:") {
			rec.held, rec.Served = true, true
		}
	}
	b.fork = &Fork{book: b, at: at, o: o, answered: make(map[uint64]bool)}
	return b.fork, nil
}

// maxForks is how many in a row are passed over that have executed nothing.
const maxForks = 64

// KeepOrder has answers, and by its Order processes, end in the recorded order, and threads wake in it, as far as the program comes to them.
func (b *Book) KeepOrder() {
	b.order = newEndOrder(b.recorded, b.given, b.told, b.processOf)
}

// processOf is the process of a thread, or of one that has executed nothing.
func (b *Book) processOf(id uint64) uint64 {
	for range maxForks { // a tape may say that each of two has started the other
		parent, ok := b.forked[id]
		if !ok {
			break
		}
		id = parent
	}
	return id
}

// Order is what KeepOrder keeps; nil for none.
func (b *Book) Order() *EndOrder { return b.order }
