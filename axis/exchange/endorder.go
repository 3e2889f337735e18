package exchange

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
)

const (
	// maxBeside is how many conversations at once keep the order of their ends. More are work that is done side by side.
	maxBeside = 64
	// maxHold is how much later than at the pace of then something comes at most because of what goes on beside it: a program that polls until it
	// comes does something every second for ever.
	maxHold = 30 * time.Second
	// chances is how often one is waited for in vain who may come by chance: a timer's request, a thread that sleeps.
	chances = 3
)

// An EndOrder keeps the order in which a program got what it waited for: the ends of answers, those of processes, and that a thread wakes which
// has slept. What it makes of two sub-agents, or of a command in the background, depends on which was done first.
//
// The recording is one order of happenings. Some are the program's doing: a request comes, a process begins. The others are given to it: an
// answer, the end of a process, a thread's waking. There is one rule. What is given waits for what was given just before it, and for what the program
// did since it was under way itself. Each of these is waited for as long as it took then, from what led to it, and two seconds: see conditions. sweep
// says what stands before what.
//
// What was given last has a moment in which the program may act on it. Where the program's own time decides, that is as long as then.
//
// What does not come in time ends all waiting: the program is another one from there on, as it is after a call that nothing answers. What may come by
// chance ends no more than the waiting for whom it comes from: a request of plain HTTP at once, one that a timer may start and the waking of a thread
// the third time.
type EndOrder struct {
	of       map[moment]*happening // what is given; not changed, as all of it
	requests []*happening          // of models, as they came
	gate     *lane.Gate[moment]
}

// A happening is a moment of the recording.
type happening struct {
	moment
	g      uint64 // the recorder's ordinal then
	ms     int64
	from   *happening    // what led to it: of an end its begin, of a request the answer before it. Nil for the begin of the run
	within time.Duration // how long it is waited for; 0 is for as long as it took then, and the slack

	by      string // who brings it, where a wait in vain is his alone; see lane.Condition
	chances int

	// Of what is given:
	process uint64       // that gets it, or the parent of one that ended
	before  []*happening // what it waits for
	next    *happening   // the request upon an answer
	pace    *happening   // an answer that had ended before; this one ends as long after it as then, or later
}

// processHappening is the end of a recorded process, which its begin led to.
func processHappening(id, parent, began, ended uint64, endedMS, tookMS int64) *happening {
	from := &happening{moment: moment{kind: momentBegan, n: id}, g: began, ms: endedMS - tookMS}
	return &happening{moment: moment{kind: momentGone, n: id}, g: ended, ms: endedMS, from: from, process: parent}
}

// wakeHappening is the nth waking of a thread.
func wakeHappening(id uint64, n int, g uint64) *happening {
	return &happening{moment: wakeOf(id, n), g: g, process: id, within: soon, by: fmt.Sprint("thread ", id), chances: chances}
}

// wakeOf is the nth waking of a thread; of one a tape keeps far fewer than there is room for.
func wakeOf(id uint64, n int) moment { return moment{kind: momentWoke, n: id<<20 | uint64(n)} }

// A moment is something that happened while recording, and is waited for on a replay.
type moment struct {
	kind momentKind
	rec  *Recorded // of momentAsked and momentOver
	n    uint64    // of the others: the spawn_id of a process, or how many equal requests were handed out
}

type momentKind uint8

const (
	momentAsked momentKind = iota // a request came
	momentOver                    // its answer was given
	momentGiven                   // so many equal requests came
	momentBegan                   // a process began
	momentNear                    // it was about to end
	momentDone                    // it ended, or is about to and waits for those whose output it read, or that read its own
	momentGone                    // it ended
	momentWoke                    // a thread woke from its sleep
)

// String is what a note calls it.
func (m moment) String() string {
	switch m.kind {
	case momentAsked:
		return "the request of " + nameOf(m.rec)
	case momentOver:
		return nameOf(m.rec)
	case momentBegan:
		return fmt.Sprintf("the begin of process %d", m.n)
	default:
		return fmt.Sprintf("process %d", m.n)
	}
}

// newEndOrder is that of exchanges, and of other things that a program was given. told are the processes without timers of their own, by
// spawn_id: of plain HTTP what they ask is ordered, and else what one asked for at once (abreast). processOf is whose a thread is. Of too many
// conversations at once nothing has an order.
func newEndOrder(recorded []*Recorded, given []*happening, told map[uint64]bool, processOf func(uint64) uint64) *EndOrder {
	callers := takersOf(recorded, told)
	tooMany := func() bool {
		return mostAtOnce(maps.Values(callers), func(l *taker) span { return l.span }) > maxBeside
	}
	if tooMany() {
		callers = takersOf(recorded, nil)
	}
	o := &EndOrder{of: make(map[moment]*happening), gate: lane.NewGate[moment](slack, nil)}
	if tooMany() {
		return o
	}
	var all []*happening
	for _, l := range callers {
		all = append(all, l.happenings(processOf)...)
	}
	for _, x := range given {
		if x.process = processOf(x.process); x.from != nil {
			all = append(all, x.from)
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y *happening) int { return cmp.Or(cmp.Compare(x.g, y.g), -cmp.Compare(x.kind, y.kind)) })
	var answers []*happening
	lastAsked := uint64(0)
	for _, x := range all {
		switch x.kind {
		case momentBegan:
		case momentAsked:
			if lastAsked = x.g; x.rec.Key.Kind == LLM {
				o.requests = append(o.requests, x)
			}
		default:
			if o.of[x.moment] = x; x.kind == momentOver {
				x.rec.order, answers = o, append(answers, x)
			}
		}
	}
	notePace(answers)
	sweep(all, callers, lastAsked)
	o.abreast(recorded, callers)
	return o
}

// happenings are the requests of a taker, and their answers.
func (l *taker) happenings(processOf func(uint64) uint64) (all []*happening) {
	var last *happening
	for _, rec := range l.all {
		asked := &happening{moment: moment{kind: momentAsked, rec: rec}, g: rec.came(), ms: rec.begun()}
		if rec.Key.Kind != LLM { // it may be a matter of moments that it is asked at all
			asked.by, asked.chances = rec.caller, 1
		}
		if last != nil && last.g < asked.g {
			asked.from, last.next = last, asked
		}
		last = &happening{moment: moment{kind: momentOver, rec: rec}, g: rec.passed(), ms: rec.endedMS, from: asked, chances: asked.chances, process: processOf(rec.opener())}
		all = append(all, asked, last)
	}
	return all
}

// sweep finds what stands before what is given. all stand in their order.
//
// Before an answer stand the requests of others that are under way, the processes that began or ended since it was asked for, and what came just
// before: the last answer of a conversation beside its own, and that a thread of its process woke. Before the end of a process stand the requests under
// way, the last answer, and the last child of its parent. Before a waking stands what came to its process just before.
func sweep(all []*happening, callers map[string]*taker, lastAsked uint64) {
	var underWay, ended []*happening
	var answer *happening
	last, child, above := make(map[uint64]*happening), make(map[uint64]*happening), make(map[uint64]bool) // by process: what it got last, and of its children
	for _, x := range all {
		if x.kind == momentAsked || x.kind == momentBegan {
			underWay = append(underWay, x)
			continue
		}
		underWay = slices.DeleteFunc(underWay, func(y *happening) bool { return y == x.from })
		before := last[x.process]
		asked := 0
		for _, y := range underWay {
			asks := y.kind == momentAsked
			if x.kind == momentGone && asks || x.kind == momentOver && (asks && y.rec.caller != x.rec.caller || !asks && y.g > x.from.g) {
				x.before = append(x.before, y)
				asked++
			}
		}
		switch x.kind {
		case momentOver:
			for _, y := range []*happening{answer, before} {
				if y != nil && !slices.Contains(x.before, y) && (y.kind == momentWoke || x.beside(y, callers)) {
					x.before = append(x.before, y)
				}
			}
			for i := len(ended) - 1; i >= 0 && ended[i].g > x.from.g; i-- {
				x.before = append(x.before, ended[i])
			}
			answer, last[x.process] = x, x
		case momentGone:
			if answer != nil {
				x.before = append(x.before, answer)
			}
			if y := child[x.process]; y != nil {
				done := &happening{moment: moment{kind: momentDone, n: y.n}, g: y.g, ms: y.ms, from: y.from}
				if x.from.g > y.g { // it may begin sooner now, or without it
					done.chances = 1
				}
				x.before = append(x.before, done)
			}
			if answer != nil && asked == 0 && x.g < lastAsked && x.from.g < answer.g {
				if !above[x.n] {
					answer.before = append(answer.before, x.near(answer))
				}
				above[x.process] = true // who started it ends after it
			}
			ended, child[x.process] = append(ended, x), x
		case momentWoke:
			if before != nil && before.rec != nil {
				before = &happening{moment: before.moment, g: before.g, within: slack, chances: 1}
			}
			if before != nil {
				x.before = append(x.before, before)
			}
			last[x.process] = x
		}
		slices.SortStableFunc(x.before, func(y, z *happening) int { return cmp.Compare(y.g, z.g) })
	}
}

// near is that a process which went on beside an answer, and ended before the next call, is about to end: where it did soon after that, else it has the
// time that it had had.
func (x *happening) near(answer *happening) *happening {
	took := lane.Between(x.from.ms, x.ms)
	had := lane.Between(x.from.ms, answer.ms)
	if took-had < slack {
		had = took + reaction
	}
	return &happening{moment: moment{kind: momentNear, n: x.n}, g: x.g, from: x.from, within: min(had, maxHold), chances: 1}
}

// beside reports whether an answer y of another conversation, which had come before x, might come after it now.
func (x *happening) beside(y *happening, callers map[string]*taker) bool {
	return x.rec.caller != y.rec.caller && (callers[x.rec.caller].beside(callers[y.rec.caller].span) || x.rec.soonAfter(y.rec))
}

// notePace finds the answers that keep their distance. Where a program takes its own time over each of two answers (a pause, a tool's work), its next
// call upon the first one may come before that upon the second because of how much later that had ended. Then all from the first to the second end at
// the pace of then.
func notePace(answers []*happening) {
	var open []int // those upon which the program had not called yet
	for i, x := range answers {
		open = slices.DeleteFunc(open, func(j int) bool { return answers[j].next.g <= x.g })
		if x.next == nil {
			continue
		}
		for _, j := range open {
			y := answers[j]
			took := y.next.ms - y.ms
			if y.rec.caller != x.rec.caller && y.next.g < x.next.g && took+took/4+grace > x.next.ms-x.ms {
				for _, z := range answers[j+1 : i+1] {
					if z.pace == nil || y.g < z.pace.g {
						z.pace = y
					}
				}
				break
			}
		}
		open = append(open, i)
	}
	for _, x := range answers {
		if x.pace != nil && x.pace.pace != nil {
			x.pace = x.pace.pace
		}
	}
}

// abreast has what a process or thread had under way together, one of plain HTTP among two that followed each other, end in its order, as far as it has
// none yet: a program asks for several things at once, and gets them in an order. That one is asked for is a guess, for a moment after the answer upon which
// it was asked for then: a timer may ask for it, later now or never.
func (o *EndOrder) abreast(recorded []*Recorded, callers map[string]*taker) {
	by := make(map[uint64][]*Recorded)
	for _, rec := range recorded {
		if rec.ends() && rec.opener() != 0 && (rec.Key.Kind == LLM || callers[rec.caller] == nil && rec.equals == nil) {
			by[rec.opener()] = append(by[rec.opener()], rec)
		}
	}
	for _, all := range by {
		slices.SortFunc(all, func(x, y *Recorded) int { return cmp.Compare(x.passed(), y.passed()) })
		overs := make([]*happening, len(all))
		for i, rec := range all {
			rec.order = o
			asked := &happening{moment: moment{kind: momentAsked, rec: rec}, g: rec.came(), ms: rec.begun(), within: reaction, by: rec.caller, chances: chances}
			overs[i] = &happening{moment: moment{kind: momentOver, rec: rec}, g: rec.passed(), ms: rec.endedMS, from: asked, chances: chances}
			if n, _ := slices.BinarySearchFunc(all[:i], asked.g, func(x *Recorded, at uint64) int { return cmp.Compare(x.passed(), at) }); n > 0 {
				asked.from = overs[n-1]
			}
			x := o.of[overs[i].moment]
			if x == nil {
				x = overs[i]
				o.of[x.moment] = x
			}
			if i > 0 && asked.g < overs[i-1].g && (rec.Key.Kind != LLM || all[i-1].Key.Kind != LLM) {
				x.before = append(x.before, overs[i-1])
			}
		}
	}
}

// conditions are what has to happen before x, which is ready now. paced says that answers take their time.
//
// Each is waited for from what led to it, where that has happened, else from now, for as long as it took then and the slack. A machine that has much
// to do takes longer for each: so it goes on for the slack after whatever of the recording happened last, for the first time, until maxHold after x
// would have come.
func (o *EndOrder) conditions(x *happening, paced bool) (all []lane.Condition[moment]) {
	if x == nil {
		return nil
	}
	now, left := time.Now(), time.Duration(0)
	if x.from != nil {
		left = max(lane.Between(x.from.ms, x.ms)-max(o.gate.Since(x.from.moment), 0), 0)
	}
	seen := make(map[*happening]bool)
	var add func(y *happening, react time.Duration)
	add = func(y *happening, react time.Duration) {
		if seen[y] || y.kind == momentWoke && o.farBehind(y) {
			return
		}
		seen[y] = true
		c := lane.Condition[moment]{
			What: y.moment, Since: now, For: y.within, By: y.by, Chances: y.chances, React: react,
		}
		if y.chances == 0 {
			c.Why = fmt.Sprintf("the recorded order was not kept from %v on: %v had come before it, and did not in time", x.moment, y.moment)
		}
		led := x.ms - left.Milliseconds()
		if from := y.from; from != nil {
			begins := from.kind == momentAsked || from.kind == momentBegan
			meanwhile := begins || from.g > x.from.g // else it came before x was under way, or never will
			if meanwhile || y.within == 0 {
				c.From, led = from.moment, from.ms
			}
			if begins {
				c.Since = time.Time{}
			}
			if meanwhile && !o.gate.Past(from.moment) && (from.kind != momentBegan || y.chances == 0) { // a process may end that has not begun
				add(from, 0)
			}
		}
		if y.within == 0 {
			c.For, c.Stretch = lane.Between(led, y.ms)+slack, now.Add(left+maxHold)
		}
		all = append(all, c)
	}
	for _, y := range x.before {
		add(y, x.reactionTo(y, paced))
	}
	if y := x.pace; y != nil {
		all = append(all, lane.Condition[moment]{What: y.moment, React: lane.Between(y.ms, x.ms)})
	}
	return all
}

// farBehind reports whether a thread has some sleeps before it: more may go on for as long as nothing comes.
func (o *EndOrder) farBehind(w *happening) bool {
	n := w.n & (1<<20 - 1)
	return n > chances && !o.gate.Past(moment{kind: momentWoke, n: w.n - chances})
}

// reactionTo is how long the program has to act on y before x comes. The end of a process comes at once: what the program did next came after both.
func (x *happening) reactionTo(y *happening, paced bool) time.Duration {
	if x.kind != momentOver || y.chances > 0 || y.kind != momentOver && y.kind != momentGone {
		return 0
	}
	return reactionTo(x.ms-y.ms, paced || y.kind == momentOver)
}

// reactionTo is how long the program has to act on an answer, or a process, that ended so many ms before the next: as long as it had where
// answers take their time, and where it is known when it rests (paced); else some times that, for the rest of the machine does not go faster.
func reactionTo(gapMS int64, paced bool) time.Duration {
	gap := time.Duration(gapMS) * time.Millisecond
	if !paced {
		gap = 5*time.Millisecond + 4*gap
	}
	return min(gap, reaction)
}

// await waits until the answer of rec may end, and then for what is left of the moment that the program has to act on what ended before.
// held, where it is not nil, is told while it is others that it waits for. The error is ctx's where that is done before.
func (o *EndOrder) await(ctx context.Context, rec *Recorded, paced bool, held func(bool)) error {
	if o == nil {
		return nil
	}
	all := o.conditions(o.of[moment{kind: momentOver, rec: rec}], paced)
	ofOthers := slices.DeleteFunc(slices.Clone(all), func(c lane.Condition[moment]) bool { return c.What.rec == nil })
	if held != nil && o.gate.Holds(ofOthers) {
		held(true)
		defer held(false)
	}
	return o.gate.Await(ctx, all)
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

// Reached is how far the run has come: the recorder's ordinal at which the first request came that has not come yet. What began after it is of a
// later turn.
func (o *EndOrder) Reached() uint64 {
	for _, x := range o.requests {
		if !o.gate.Past(x.moment) {
			return x.g
		}
	}
	return math.MaxUint64
}

// ProcessBegan says that the recorded process of a spawn_id runs again, ProcessEnded that it has ended. Of others nothing depends on it.
func (o *EndOrder) ProcessBegan(id uint64) { o.processHas(id, momentBegan) }

// ProcessEnded is the other half of ProcessBegan.
func (o *EndOrder) ProcessEnded(id uint64) { o.processHas(id, momentNear, momentDone, momentGone) }

// ProcessLeaves says that a process waits for others to end whose output it read, or that read its own.
func (o *EndOrder) ProcessLeaves(id uint64) { o.processHas(id, momentDone) }

func (o *EndOrder) processHas(id uint64, all ...momentKind) {
	for _, kind := range all {
		if o.of[moment{kind: momentGone, n: id}] != nil {
			o.happened(moment{kind: kind, n: id})
		}
	}
}

// ProcessEnding is told of a process that is about to end. It returns what waits until it is to; nil where it may at once. That ends with
// ctx too.
func (o *EndOrder) ProcessEnding(id uint64) (wait func(ctx context.Context)) {
	all := o.conditions(o.of[moment{kind: momentGone, n: id}], false)
	holds := o.gate.Holds(all)
	o.processHas(id, momentNear) // upon which an answer may be given that it waits for
	if !holds {
		return nil
	}
	return func(ctx context.Context) { _ = o.gate.Await(ctx, all) }
}

// Wakes waits until a thread may wake from its nth sleep. That ends with ctx too.
func (o *EndOrder) Wakes(ctx context.Context, id uint64, n int) {
	_ = o.gate.Await(ctx, o.conditions(o.of[wakeOf(id, n)], false))
}

// Woken says that it has woken.
func (o *EndOrder) Woken(id uint64, n int) { o.happened(wakeOf(id, n)) }

// Lost says where the recorded order could not be kept.
func (o *EndOrder) Lost() []string {
	if o == nil {
		return nil
	}
	return o.gate.Missed()
}

// A span is when something began and ended.
type span struct{ begun, ended int64 }

func (s span) beside(o span) bool { return s.begun <= o.ended && o.begun <= s.ended }

// mostAtOnce is how many went on at one time at most.
func mostAtOnce[T any](all iter.Seq[T], when func(T) span) int {
	type edge struct{ at, by int64 }
	var edges []edge
	for x := range all {
		s := when(x)
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

// A taker is who takes answers: a conversation with a model, or of plain HTTP a thread or process that asks one place. The span is in ms.
type taker struct {
	span
	all []*Recorded // by arrival
}

// takersOf are who took the answers of models, and of plain HTTP those whose opener is told. Who has more calls at once than a program sends to take
// the first answer is no conversation, nor is any of the same opening: which of its callers acted on which answer nothing tells.
func takersOf(recorded []*Recorded, told map[uint64]bool) map[string]*taker {
	all, crowded := make(map[string]*taker), make(map[string]bool)
	for _, rec := range recorded {
		if !rec.ends() {
			continue
		}
		if rec.caller = rec.Lane; rec.Key.Kind != LLM {
			rec.caller = rec.asker()
		}
		if rec.Key.Kind != LLM && !told[rec.opener()] {
			continue
		}
		l := all[rec.caller]
		if l == nil {
			l = &taker{span: span{begun: rec.begun()}}
			all[rec.caller] = l
		}
		l.all, l.ended = append(l.all, rec), max(l.ended, rec.endedMS)
	}
	openingOf := func(lane string) string { opening, _, _ := strings.Cut(lane, "#"); return opening }
	for name, l := range all {
		if mostAtOnce(slices.Values(l.all), (*Recorded).span) > fewEqual {
			crowded[openingOf(name)] = true
		}
	}
	maps.DeleteFunc(all, func(name string, _ *taker) bool { return crowded[openingOf(name)] })
	return all
}

// ends reports whether an exchange came to an end that has a place.
func (r *Recorded) ends() bool {
	return !r.Key.Socket && !r.Key.Stream && !r.held && r.Exchange.Status != 0 && r.Exchange.Error == "" && r.g != 0 && r.endedMS > 0
}

// asker is who asks one place for something.
func (r *Recorded) asker() string {
	return fmt.Sprint("by:", r.opener(), " ", sidetraffic.RouteOf(r.Exchange.Method, r.Exchange.URL))
}
