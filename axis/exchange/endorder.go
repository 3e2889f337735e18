package exchange

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// maxBeside is how many conversations at once keep the order of their ends. More are work that is done side by side.
const maxBeside = 8

// maxHeadStart is for how long at most an answer has a process run that goes on beside it.
const maxHeadStart = 20 * time.Second

// maxHold is for how long at most an end is held up for what goes on beside it, from when it would have been then: a program that polls
// until it comes does something every second for ever.
const maxHold = 30 * time.Second

// An endOrder keeps the order in which a program got what it waited for: the ends of answers of models, and of processes. What it makes of
// two sub-agents, or of a command in the background, depends on which was done first.
//
// The last chunk of an answer waits until the program has got what it had got before: the end of the answer that had ended just before, of
// a conversation beside this one, and those of the processes that had ended since. And it waits until the program has done what it had done
// while the answer came: until requests beside this one have come, and processes have begun. What had ended has then a moment in which the
// program may act on it. A process that went on, and ended before the next call, is about to end by then, or has had its time.
//
// A process ends once the answers that had ended before it are given, and the requests have come that had.
//
// It waits for as long as that took then, and two seconds, and for two seconds from what of the recording happened last, for the first time: a
// machine that has much to do takes longer for each. That ends maxHold after the end would have been then. A wait in vain ends all others, and so does a call that nothing answers: the program is another one from there on.
type endOrder struct {
	answers   map[*Recorded]*order       // not changed, as all of it
	processes map[uint64]*order          // by spawn_id
	prior     map[*Recorded]*Recorded    // of each answer the one before it in its conversation
	ends      map[uint64]recordedProcess // by spawn_id
	gate      *lane.Gate[moment]
}

// An order is what had happened before one end.
type order struct {
	answer *Recorded         // whose end was the last one before; nil for none
	asked  []*Recorded       // requests that had come
	ended  []recordedProcess // processes that had ended since answer
	begun  []recordedProcess // processes that had begun, and went on
	beside []recordedProcess // those that had begun, and ended before the next call
}

// A recordedProcess is one that ended, by its spawn_id.
type recordedProcess struct {
	id, parent      uint64
	at, g           uint64 // the recorder's ordinals of its begin and of its end
	endedMS, tookMS int64
}

func (p *recordedProcess) begunMS() int64 { return p.endedMS - p.tookMS }

// placeProcess finds the answers that wait for a process, and what it waits for. The processes come in the order of their ends. Of those that
// went on beside an answer nobody waits for one that started another: they are above it, and end after it.
func (o *endOrder) placeProcess(all []*Recorded, p recordedProcess, above map[uint64]bool) {
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
	o.ends[p.id], o.processes[p.id] = p, own
	if last := own.answer; later && len(own.asked) == 0 && last != nil && p.at < last.passed() {
		if !above[p.id] {
			o.answers[last].beside = append(o.answers[last].beside, p)
		}
		above[p.parent] = true
	}
}

// laneSpan is when a conversation, by arrival, began and ended.
func laneSpan(lane []*Recorded) (begun, ended int64) {
	for _, rec := range lane {
		ended = max(ended, rec.endedMS)
	}
	return lane[0].begun(), ended
}

func beside(x, y []*Recorded) bool {
	beganX, endedX := laneSpan(x)
	beganY, endedY := laneSpan(y)
	return beganX <= endedY && beganY <= endedX
}

// mostBeside is how many conversations went on at one time at most.
func mostBeside(lanes map[string][]*Recorded) int {
	type edge struct{ at, by int64 }
	var edges []edge
	for _, calls := range lanes {
		begun, ended := laneSpan(calls)
		edges = append(edges, edge{begun, 1}, edge{ended + 1, -1})
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
// The error is ctx's where that is done before.
func (o *endOrder) await(ctx context.Context, rec *Recorded, paced bool) error {
	if o == nil {
		return nil
	}
	e := &ending{order: o.answers[rec], who: nameOf(rec), since: time.Now(), begunMS: rec.begun(), endedMS: rec.endedMS, paced: paced}
	e.due = e.since.Add(time.Duration(e.endedMS-e.begunMS) * time.Millisecond)
	return o.gate.Await(ctx, o.conditions(e))
}

// ending is what the end of a process waits for, that comes now.
func (o *endOrder) ending(id uint64) []lane.Condition[moment] {
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
	who              string
	since            time.Time // when it was first held up
	due              time.Time // when it would have been at the pace of then, or since
	begunMS, endedMS int64     // when it would have been then, had nothing held it up; when it was
	paced            bool      // answers take their time
	process          bool      // which ends at once: what the program did next came after both
}

// conditions are what has to happen before an end.
func (o *endOrder) conditions(e *ending) (all []lane.Condition[moment]) {
	add := func(c lane.Condition[moment], tookMS int64, why string) {
		c.Since, c.For, c.Stretch = e.since, time.Duration(max(tookMS, 0))*time.Millisecond+slack, e.due.Add(maxHold)
		c.Why = fmt.Sprintf("the recorded order was not kept from %s on: it had ended %s in time", e.who, why)
		if e.process {
			c.React = 0
		}
		all = append(all, c)
	}
	if first := e.answer; first != nil {
		c, took := lane.Condition[moment]{What: moment{kind: momentOver, rec: first}, React: reactionTo(e.endedMS-first.endedMS, e.paced)}, int64(0)
		if prior := o.prior[first]; prior != nil {
			c.From, took = moment{kind: momentOver, rec: prior}, first.begun()-prior.endedMS
			if e.paced {
				took = first.endedMS - prior.endedMS
			}
		}
		add(c, took, "after "+nameOf(first)+", which did not come to its end")
	}
	for _, rec := range e.asked {
		add(lane.Condition[moment]{What: moment{kind: momentAsked, rec: rec}}, rec.begun()-e.begunMS, "when "+nameOf(rec)+" had come, which did not come")
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
func (o *endOrder) happened(what moment) {
	if o != nil {
		o.gate.Happened(what)
	}
}

// giveUp ends all waiting.
func (o *endOrder) giveUp() {
	if o != nil {
		o.gate.Open()
	}
}
