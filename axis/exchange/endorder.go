package exchange

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
)

// maxBeside is how many conversations at once keep the order of their ends. More are work that is done side by side.
const maxBeside = 64

// maxHeadStart is for how long at most an answer has a process run that goes on beside it.
const maxHeadStart = 20 * time.Second

// maxHold is for how long at most an end is held up for what goes on beside it, from when it would have been then: a program that polls
// until it comes does something every second for ever.
const maxHold = 30 * time.Second

const (
	// atOnce is how long what a program asks for at once takes to come, or upon an answer.
	atOnce = 50 * time.Millisecond
	// maxAway is how often that is waited for in vain of one taker: a timer may ask for it.
	maxAway = 3
)

// An EndOrder keeps the order in which a program got what it waited for: the ends of answers, those of processes, and that a thread wakes which has slept. What it makes of
// two sub-agents, or of a command in the background, depends on which was done first.
//
// The last chunk of an answer waits until the program has got what it had got before: the end of the answer that had ended just before, of
// a conversation beside this one, and those of the processes that had ended since. And it waits until the program has done what it had done
// while the answer came: until requests beside this one have come, and processes have begun. What had ended has then a moment in which the
// program may act on it. A process that went on, and ended before the next call, is about to end by then, or has had its time.
//
// A lane that has more calls at once than a program sends to take the first answer is no conversation: which of its callers acted on which
// answer nothing tells. It has no part in all this, nor have others of its opening. Nor has plain HTTP of a runtime whose timers may start it. But
// what one process or thread asked for at once has an order all the same (abreast).
//
// A process ends once the answers that had ended before it are given, the requests have come that had, and the children of its
// parent that had ended have ended, whichever of its threads, and of its forks that executed nothing, had started them.
//
// It waits for as long as that took then, and two seconds, and for two seconds from what of the recording happened last, for the first time: a
// machine that has much to do takes longer for each. That ends maxHold after the end would have been then. A wait in vain ends all others, and so does a call that nothing answers: the program is another one from there on.
type EndOrder struct {
	answers   map[*Recorded]*order       // not changed, as all of it
	abreast   map[*Recorded][]*Recorded  // of what a process asked for at once, where models alone have no order: what led to what ended before it, and that
	processes map[uint64]*order          // by spawn_id
	wakes     map[moment]happening       // of each waking of a thread what its process got just before
	prior     map[*Recorded]*Recorded    // of each answer the one before it in its conversation
	ends      map[uint64]recordedProcess // by spawn_id
	requests  []lane.Condition[moment]   // as they came
	gate      *lane.Gate[moment]
	strays    sync.Map // takers of plain HTTP that have been waited for in vain

	mu   sync.Mutex
	vain map[uint64]int // how often the waking of a thread was waited for in vain
	away map[string]int // how often what a taker asks for at once was
}

// An order is what had happened before one end.
type order struct {
	answer *Recorded         // whose end was the last one before; nil for none
	asked  []*Recorded       // requests that had come
	woke   *wake             // the thread of the same process that woke just before; nil for none
	ended  []recordedProcess // processes that had ended since answer
	begun  []recordedProcess // processes that had begun, and went on
	beside []recordedProcess // those that had begun, and ended before the next call
	prior  *recordedProcess  // of a process: the one of the same parent that had ended last. Nil for none
	behind bool              // this one began when prior had ended; it may begin sooner now, or without it
	pace   *Recorded         // an answer that had ended before; this one ends as long after it as then, or later. Nil for none
}

// A recordedProcess is one that ended, by its spawn_id.
type recordedProcess struct {
	id, parent      uint64
	at, g           uint64 // the recorder's ordinals of its begin and of its end
	endedMS, tookMS int64
}

func (p *recordedProcess) begunMS() int64 { return p.endedMS - p.tookMS }

// noteAsked finds the requests that came while an answer of another conversation did.
func (o *EndOrder) noteAsked(all []*Recorded) {
	byCome := slices.Clone(all)
	slices.SortStableFunc(byCome, func(x, y *Recorded) int { return cmp.Compare(x.came(), y.came()) })
	for _, rec := range all {
		n, _ := slices.BinarySearchFunc(byCome, rec.came()+1, func(x *Recorded, g uint64) int { return cmp.Compare(x.came(), g) })
		for _, other := range byCome[n:] {
			if other.came() >= rec.passed() {
				break
			}
			if other.caller != rec.caller {
				o.answers[rec].asked = append(o.answers[rec].asked, other)
			}
		}
	}
}

// placeProcess finds the answers that wait for a process, and what it waits for. The processes come in the order of their ends. Of those that
// went on beside an answer nobody waits for one that started another: they are above it, and end after it. latest has the last one of each parent.
func (o *EndOrder) placeProcess(all []*Recorded, p recordedProcess, above map[uint64]bool, latest map[uint64]recordedProcess) {
	own, later := new(order), false
	for _, rec := range all {
		x, came, passed := o.answers[rec], rec.came(), rec.passed()
		switch {
		case came > p.g:
			later = true
		case passed > p.g:
			own.asked, x.ended = append(own.asked, rec), append(x.ended, p)
		default:
			if own.answer == nil || own.answer.passed() < passed {
				own.answer = rec
			}
			if came < p.at && p.at < passed {
				x.begun = append(x.begun, p)
			}
		}
	}
	if last, ok := latest[p.parent]; ok {
		own.prior, own.behind = &last, p.at > last.g
	}
	latest[p.parent] = p
	o.ends[p.id], o.processes[p.id] = p, own
	if last := own.answer; later && len(own.asked) == 0 && last != nil && p.at < last.passed() {
		if !above[p.id] {
			o.answers[last].beside = append(o.answers[last].beside, p)
		}
		above[p.parent] = true
	}
}

// notePace finds the answers that keep their distance. Where a program takes its own time over each of two answers (a pause, a tool's work), its next
// call upon the first one may come before that upon the second because of how much later that had ended. Then all from the first to the second end at
// the pace of then. all stand as they ended.
func (o *EndOrder) notePace(all []*Recorded) {
	next := make(map[*Recorded]*Recorded)
	for rec, prior := range o.prior {
		next[prior] = rec
	}
	from := make([]int, len(all)) // for each the first that it keeps a distance from
	var open []int                // those upon which the program had not called yet
	for i, rec := range all {
		from[i] = i
		open = slices.DeleteFunc(open, func(y int) bool { return next[all[y]].came() <= rec.passed() })
		then := next[rec]
		if then == nil {
			continue
		}
		for _, y := range open {
			first := next[all[y]]
			took, tookThen := first.begun()-all[y].endedMS, then.begun()-rec.endedMS
			if all[y].caller != rec.caller && first.came() < then.came() && took+took/4+grace > tookThen {
				from[i] = y
				break
			}
		}
		open = append(open, i)
	}
	for i := len(all) - 1; i > 0; i-- { // what is between keeps it too
		if from[i] < i {
			from[i-1] = min(from[i-1], from[i])
		}
	}
	for i, rec := range all {
		if from[i] < i {
			for from[from[i]] < from[i] {
				from[i] = from[from[i]]
			}
			o.answers[rec].pace = all[from[i]]
		}
	}
}

// A span is when something began and ended.
type span struct{ begun, ended int64 }

func (s span) beside(o span) bool { return s.begun <= o.ended && o.begun <= s.ended }

// A taker is who takes answers: a conversation with a model, or of plain HTTP a thread or process that asks one place. The span is in ms.
type taker struct {
	span
	all []*Recorded // by arrival
}

// leaveCrowded takes out who has more calls at once than a conversation has, and all of the same opening.
func leaveCrowded(lanes map[string]*taker) {
	openingOf := func(lane string) string { opening, _, _ := strings.Cut(lane, "#"); return opening }
	crowded := make(map[string]bool)
	for name, l := range lanes {
		var calls []span // in ordinals
		for _, rec := range l.all {
			calls = append(calls, rec.span())
		}
		if mostAtOnce(calls) > fewEqual {
			crowded[openingOf(name)] = true
		}
	}
	maps.DeleteFunc(lanes, func(name string, _ *taker) bool { return crowded[openingOf(name)] })
}

// mostAtOnce is how many of spans went on at one time at most.
func mostAtOnce(spans []span) int {
	type edge struct{ at, by int64 }
	var edges []edge
	for _, s := range spans {
		edges = append(edges, edge{s.begun, 1}, edge{s.ended + 1, -1})
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.by, y.by)) })
	now, most := int64(0), int64(0)
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return int(most)
}

// await waits until the answer of rec may end, and then for what is left of the moment that the program has to act on what ended before.
// held, where it is not nil, is told while it is others that it waits for. The error is ctx's where that is done before.
func (o *EndOrder) await(ctx context.Context, rec *Recorded, paced bool, held func(bool)) error {
	if o == nil {
		return nil
	}
	e := &ending{order: cmp.Or(o.answers[rec], new(order)), abreast: o.abreast[rec], who: nameOf(rec), since: time.Now(), begunMS: rec.begun(), endedMS: rec.endedMS, paced: paced}
	e.due = e.since.Add(time.Duration(e.endedMS-e.begunMS) * time.Millisecond)
	all := o.conditions(e)
	ofOthers := slices.DeleteFunc(slices.Clone(all), func(c lane.Condition[moment]) bool { return c.What.rec == nil })
	if held != nil && o.gate.Holds(ofOthers) {
		held(true)
		defer held(false)
	}
	return o.gate.Await(ctx, all)
}

// ending is what the end of a process waits for, that comes now.
func (o *EndOrder) ending(id uint64) []lane.Condition[moment] {
	p, now := o.ends[id], time.Now()
	e := &ending{
		order: o.processes[id], who: fmt.Sprintf("process %d", id), since: now, due: now, begunMS: p.endedMS, endedMS: p.endedMS, process: true,
	}
	if ago := o.gate.Since(moment{kind: momentBegan, n: id}); ago != lane.Forever {
		e.due = now.Add(max(time.Duration(p.tookMS)*time.Millisecond-ago, 0))
	}
	return o.conditions(e)
}

// An ending is one end that is held up.
type ending struct {
	*order
	abreast          []*Recorded // what has no other order than to end before it, behind the answers upon which it was asked for; nil for none
	who              string
	since            time.Time // when it was first held up
	due              time.Time // when it would have been at the pace of then, or since
	begunMS, endedMS int64     // when it would have been then, had nothing held it up; when it was
	paced            bool      // answers take their time
	process          bool      // which ends at once: what the program did next came after both
}

// conditions are what has to happen before an end.
func (o *EndOrder) conditions(e *ending) (all []lane.Condition[moment]) {
	add := func(c lane.Condition[moment], tookMS int64, why string) {
		c.Since, c.For, c.Stretch = e.since, time.Duration(max(tookMS, 0))*time.Millisecond+slack, e.due.Add(maxHold)
		c.Why = fmt.Sprintf("the recorded order was not kept from %s on: it had ended %s in time", e.who, why)
		if e.process {
			c.React = 0
		}
		if rec := c.What.rec; rec != nil && rec.Key.Kind != LLM { // it may be a matter of moments that it is asked at all, and of those one is waited for
			if _, stray := o.strays.Load(rec.caller); stray {
				return
			}
			c.React, c.Excused, c.Late = 0, true, func() { o.strays.Store(rec.caller, true) }
		}
		all = append(all, c)
	}
	if first := e.answer; first != nil {
		c, took := lane.Condition[moment]{What: moment{kind: momentOver, rec: first}, React: reactionTo(e.endedMS-first.endedMS, true)}, int64(0)
		if prior := o.prior[first]; prior != nil {
			c.From, took = moment{kind: momentOver, rec: prior}, first.begun()-prior.endedMS
			if e.paced {
				took = first.endedMS - prior.endedMS
			}
		}
		add(c, took, "after "+nameOf(first)+", which did not come to its end")
	}
	var upon moment
	for _, rec := range e.abreast { // which a timer may ask for, later now or never
		over := moment{kind: momentOver, rec: rec}
		if o.strayed(rec.caller, 0) >= maxAway && o.gate.Since(moment{kind: momentAsked, rec: rec}) == lane.Forever {
			continue
		}
		all = append(all, lane.Condition[moment]{What: moment{kind: momentHere, rec: rec}, From: upon, Since: e.since, For: atOnce, Excused: true, Late: func() { o.strayed(rec.caller, 1) }},
			lane.Condition[moment]{What: over, From: moment{kind: momentAsked, rec: rec}, For: slack, Stretch: e.due.Add(maxHold), Excused: true})
		upon = over
	}
	if y := e.pace; y != nil {
		all = append(all, lane.Condition[moment]{What: moment{kind: momentOver, rec: y}, React: lane.Between(y.endedMS, e.endedMS)})
	}
	if e.woke != nil {
		all = append(all, o.woken(e.woke, e.since)...)
	}
	for _, rec := range e.asked {
		add(lane.Condition[moment]{What: moment{kind: momentAsked, rec: rec}}, rec.begun()-e.begunMS, "when "+nameOf(rec)+" had come, which did not come")
	}
	if p := e.prior; p != nil {
		add(lane.Condition[moment]{What: moment{kind: momentDone, n: p.id}, From: moment{kind: momentBegan, n: p.id}, Excused: e.behind}, p.tookMS,
			fmt.Sprintf("after process %d, which did not come to its end", p.id))
	}
	for _, p := range e.beside {
		near, began := moment{kind: momentNear, n: p.id}, moment{kind: momentBegan, n: p.id}
		all = append(all, lane.Condition[moment]{What: near, From: began, For: p.headStart(e.endedMS), Excused: true})
	}
	for i, p := range slices.Concat(e.begun, e.ended) {
		began := moment{kind: momentBegan, n: p.id}
		add(lane.Condition[moment]{What: began}, p.begunMS()-e.begunMS, fmt.Sprintf("when process %d had begun, which did not begin", p.id))
		if i >= len(e.begun) {
			gone := moment{kind: momentGone, n: p.id}
			add(lane.Condition[moment]{What: gone, From: began, React: reactionTo(e.endedMS-p.endedMS, e.paced)}, p.tookMS,
				fmt.Sprintf("after process %d, which did not come to its end", p.id))
		}
	}
	return all
}

// strayed counts how often what a taker asks for at once was waited for in vain.
func (o *EndOrder) strayed(caller string, more int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away[caller] += more
	return o.away[caller]
}

// headStart is for how long an answer that ended at a time waits for a process to come near its end: for all its time where that was over
// soon after, else for the time that it had had.
func (p *recordedProcess) headStart(endedMS int64) time.Duration {
	had := time.Duration(endedMS-p.begunMS()) * time.Millisecond
	if took := time.Duration(p.tookMS) * time.Millisecond; took-had < slack {
		had = took + reaction
	}
	return min(had, maxHeadStart)
}

// happened notes that something has happened. Nothing is no order.
func (o *EndOrder) happened(what moment) {
	if o != nil {
		o.gate.Happened(what)
	}
}

// giveUp ends all waiting.
func (o *EndOrder) giveUp() {
	if o != nil {
		o.gate.Open()
	}
}

// A moment is something that happened while recording, and is waited for on a replay.
type moment struct {
	kind momentKind
	rec  *Recorded // of momentAsked and momentOver
	n    uint64    // of the others: the spawn_id of a process, or how many equal requests were handed out
}

type momentKind uint8

const (
	momentAsked momentKind = iota // a request came
	momentHere                    // it came, or was waited for in vain
	momentOver                    // its answer was given
	momentGiven                   // so many equal requests came
	momentBegan                   // a process began
	momentNear                    // it was about to end, or nobody waits for it to be
	momentGone                    // it ended
	momentWoke                    // a thread woke from its sleep
	momentDone                    // it ended, or is about to and waits for those whose output it read
)

// reactionTo is how long the program has to act on an answer, or a process, that ended so many ms before the next: as long as it had where
// answers take their time, and where it is known when it rests (paced); else some times that, for the rest of the machine does not go faster.
func reactionTo(gapMS int64, paced bool) time.Duration {
	gap := time.Duration(gapMS) * time.Millisecond
	if !paced {
		gap = 5*time.Millisecond + 4*gap
	}
	return min(gap, reaction)
}

// takersOf are the exchanges that are wanted and came to their end, and who took their answers.
func takersOf(recorded []*Recorded, wanted func(*Recorded) bool) (all []*Recorded, callers map[string]*taker) {
	callers = make(map[string]*taker)
	for _, rec := range recorded {
		if !rec.ends() || !wanted(rec) {
			continue
		}
		all = append(all, rec)
		if rec.caller = rec.Lane; rec.Key.Kind != LLM {
			rec.caller = rec.asker()
		}
		l := callers[rec.caller]
		if l == nil {
			l = &taker{span: span{begun: rec.begun()}}
			callers[rec.caller] = l
		}
		l.all, l.ended = append(l.all, rec), max(l.ended, rec.endedMS)
	}
	leaveCrowded(callers)
	return slices.DeleteFunc(all, func(rec *Recorded) bool { return callers[rec.caller] == nil }), callers
}

// ends reports whether an exchange came to an end that has a place.
func (r *Recorded) ends() bool {
	return !r.Key.Socket && !r.Key.Stream && !r.held && r.Exchange.Status != 0 && r.Exchange.Error == "" && r.g != 0 && r.endedMS > 0
}

// asker is who asks one place for something.
func (r *Recorded) asker() string {
	return fmt.Sprint("by:", r.opener(), " ", sidetraffic.RouteOf(r.Exchange.Method, r.Exchange.URL))
}

// abreast finds of the exchanges that a process or thread had under way together, one of plain HTTP among two that followed each other, which ended
// before which: a program asks for several things at once, and gets them in an order. Those in order have one, as equal ones have.
func abreast(recorded, order []*Recorded) map[*Recorded][]*Recorded {
	ordered, by := make(map[*Recorded]bool), make(map[uint64][]*Recorded)
	for _, rec := range order {
		ordered[rec] = true
	}
	for _, rec := range recorded {
		if rec.ends() && rec.opener() != 0 && (rec.Key.Kind == LLM || !ordered[rec] && rec.equals == nil) {
			by[rec.opener()], rec.caller = append(by[rec.opener()], rec), cmp.Or(rec.caller, rec.asker())
		}
	}
	before := make(map[*Recorded][]*Recorded)
	for _, all := range by {
		slices.SortFunc(all, func(x, y *Recorded) int { return cmp.Compare(x.passed(), y.passed()) })
		for i, rec := range all[min(1, len(all)):] {
			if prior := all[i]; rec.came() < prior.passed() && (rec.Key.Kind != LLM || prior.Key.Kind != LLM) {
				before[rec] = ledTo(all[:i+1], rec.came())
			}
		}
	}
	return before
}

// maxLed bounds how many answers one upon another are waited for.
const maxLed = 512

// ledTo are the last of all, which stand as they ended, and before it those upon which it may have been asked for, each upon the one before it, that
// ended after from.
func ledTo(all []*Recorded, from uint64) (led []*Recorded) {
	for len(all) > 0 && len(led) < maxLed && all[len(all)-1].passed() > from {
		last := all[len(all)-1]
		led = append(led, last)
		n, _ := slices.BinarySearchFunc(all, last.came(), func(x *Recorded, at uint64) int { return cmp.Compare(x.passed(), at) })
		all = all[:n]
	}
	slices.Reverse(led)
	return led
}

// spansOf are those of callers.
func spansOf(callers map[string]*taker) (all []span) {
	for _, l := range callers {
		all = append(all, l.span)
	}
	return all
}

// newEndOrder is that of exchanges and processes; nil where there is nothing to order, or too much. Of plain HTTP those are ordered whose opener is told,
// by its spawn_id: a process whose runtime does not start by timers of its own what it asks.
func newEndOrder(recorded []*Recorded, processes []recordedProcess, told map[uint64]bool, sleeps bool) *EndOrder {
	all, callers := takersOf(recorded, func(rec *Recorded) bool { return rec.Key.Kind == LLM || told[rec.opener()] })
	if mostAtOnce(spansOf(callers)) > maxBeside {
		all, callers = takersOf(recorded, func(rec *Recorded) bool { return rec.Key.Kind == LLM })
	}
	together := abreast(recorded, all)
	if len(callers)+len(processes) < 2 && !sleeps && len(together) == 0 || mostAtOnce(spansOf(callers)) > maxBeside {
		return nil
	}
	o := &EndOrder{
		answers: make(map[*Recorded]*order), abreast: together, processes: make(map[uint64]*order),
		wakes: make(map[moment]happening), vain: make(map[uint64]int), away: make(map[string]int),
		prior: make(map[*Recorded]*Recorded), ends: make(map[uint64]recordedProcess), gate: lane.NewGate[moment](slack, nil),
	}
	for _, l := range callers {
		for i, rec := range l.all[1:] {
			o.prior[rec] = l.all[i]
		}
	}
	slices.SortFunc(all, func(x, y *Recorded) int { return cmp.Compare(x.g, y.g) })
	for i, rec := range all {
		rec.order, o.answers[rec] = o, new(order)
		if i > 0 && rec.caller != all[i-1].caller && (callers[rec.caller].beside(callers[all[i-1].caller].span) || rec.soonAfter(all[i-1])) {
			o.answers[rec].answer = all[i-1]
		}
	}
	for _, rec := range all {
		if rec.Key.Kind != LLM { // of others one may be a matter of moments
			continue
		}
		o.requests = append(o.requests, lane.Condition[moment]{What: moment{kind: momentAsked, rec: rec}, Since: time.Unix(0, 0)})
	}
	slices.SortStableFunc(o.requests, func(x, y lane.Condition[moment]) int { return cmp.Compare(x.What.rec.came(), y.What.rec.came()) })
	o.noteAsked(all)
	o.notePace(all)
	above, latest := make(map[uint64]bool), make(map[uint64]recordedProcess)
	slices.SortFunc(processes, func(x, y recordedProcess) int { return cmp.Compare(x.g, y.g) })
	for _, p := range processes {
		o.placeProcess(all, p, above, latest)
	}
	for rec, before := range o.abreast {
		rec.order = o
		for _, rec := range before {
			rec.order = o
		}
	}
	return o
}

// Reached is how far the run has come: the recorder's ordinal at which the first request came that has not come yet. What began after it is of a
// later turn.
func (o *EndOrder) Reached() uint64 {
	if o != nil {
		if next := o.gate.Missing(o.requests); next != nil {
			return next.What.rec.came()
		}
	}
	return math.MaxUint64
}

// ProcessBegan says that the recorded process of a spawn_id runs again, ProcessEnded that it has ended. Of others nothing depends on it.
func (o *EndOrder) ProcessBegan(id uint64) { o.processHas(momentBegan, id) }

// ProcessEnded is the other half of ProcessBegan.
func (o *EndOrder) ProcessEnded(id uint64) { o.processHas(momentGone, id) }

func (o *EndOrder) processHas(kind momentKind, id uint64) {
	if o != nil && o.processes[id] != nil {
		if kind == momentGone {
			o.happened(moment{kind: momentNear, n: id})
			o.happened(moment{kind: momentDone, n: id})
		}
		o.happened(moment{kind: kind, n: id})
	}
}

// ProcessLeaves says that a process waits for others to end whose output it read.
func (o *EndOrder) ProcessLeaves(id uint64) { o.happened(moment{kind: momentDone, n: id}) }

// ProcessEnding is told of a process that is about to end. It returns what waits until it is to; nil where it may at once. That ends with
// ctx too.
func (o *EndOrder) ProcessEnding(id uint64) (wait func(ctx context.Context)) {
	if o == nil || o.processes[id] == nil {
		return nil
	}
	o.happened(moment{kind: momentNear, n: id})
	e := o.ending(id)
	if !o.gate.Holds(e) {
		return nil
	}
	return func(ctx context.Context) { _ = o.gate.Await(ctx, e) }
}

// A wake is a thread that wakes from its nth sleep, and the recorder's ordinal then.
type wake struct {
	id uint64
	n  int
	g  uint64
}

// moment is what is waited for; of one thread a tape keeps far fewer.
func (w *wake) moment() moment { return moment{kind: momentWoke, n: w.id<<20 | uint64(w.n)} }

const (
	wakeLate = 500 * time.Millisecond // how long a waking is waited for
	wakeVain = 3                      // how often in vain, for one thread
	wakeNear = 3                      // how many sleeps at most it has before that: more may go on for as long as nothing comes
)

// A happening is something that a process got: an answer, or that a thread of it woke.
type happening struct {
	g, process uint64
	rec        *Recorded
	wake       *wake
}

// placeWakes finds what each thread wakes after, and which answers come after that.
func (o *EndOrder) placeWakes(wakes []wake, processOf func(uint64) uint64) {
	if o == nil {
		return
	}
	var all []happening
	for rec := range o.answers {
		if by := rec.opener(); by != 0 {
			all = append(all, happening{g: rec.passed(), process: processOf(by), rec: rec})
		}
	}
	for i := range wakes {
		w := &wakes[i]
		all = append(all, happening{g: w.g, process: processOf(w.id), wake: w})
	}
	slices.SortFunc(all, func(x, y happening) int { return cmp.Compare(x.g, y.g) })
	last := make(map[uint64]happening)
	for _, h := range all {
		before, ok := last[h.process]
		last[h.process] = h
		switch {
		case !ok:
		case h.wake != nil:
			o.wakes[h.wake.moment()] = before
		case before.wake != nil:
			o.answers[h.rec].woke = before.wake
		case before.rec.caller != h.rec.caller && h.rec.soonAfter(before.rec): // who asks one after another waits for nothing
			o.answers[h.rec].answer = before.rec
		}
	}
}

// woken is what waits for a thread to wake.
func (o *EndOrder) woken(w *wake, since time.Time) []lane.Condition[moment] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.vain[w.id] >= wakeVain || w.n > wakeNear && o.gate.Since((&wake{id: w.id, n: w.n - wakeNear}).moment()) == lane.Forever {
		return nil
	}
	return []lane.Condition[moment]{{What: w.moment(), Since: since, For: wakeLate, Excused: true, Late: func() {
		o.mu.Lock()
		o.vain[w.id]++
		o.mu.Unlock()
	}}}
}

// Wakes waits until a thread may wake from its nth sleep: after what its process had got before. That ends with ctx too.
func (o *EndOrder) Wakes(ctx context.Context, id uint64, n int) {
	if o == nil {
		return
	}
	before, ok := o.wakes[(&wake{id: id, n: n}).moment()]
	now := time.Now()
	switch {
	case !ok:
	case before.wake != nil:
		_ = o.gate.Await(ctx, o.woken(before.wake, now))
	default:
		_ = o.gate.Await(ctx, []lane.Condition[moment]{{What: moment{kind: momentOver, rec: before.rec}, Since: now, For: slack, Stretch: now.Add(maxHold), Excused: true}})
	}
}

// Woken says that it has woken.
func (o *EndOrder) Woken(id uint64, n int) { o.happened((&wake{id: id, n: n}).moment()) }

// Lost says where the recorded order could not be kept.
func (o *EndOrder) Lost() []string {
	if o == nil {
		return nil
	}
	return o.gate.Missed()
}
