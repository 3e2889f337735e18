package exchange

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxBeside is how many conversations at once keep the order of their ends. More are work that is done side by side.
const maxBeside = 8

// maxHeadStart is for how long at most an answer waits for a process that goes on beside it.
const maxHeadStart = 20 * time.Second

// An endOrder keeps the order in which the answers of conversations with models ended that went on beside each other: what a program
// makes of two sub-agents depends on which was done first. The last chunk of an answer waits until that of the one that had ended just
// before it, of another conversation, has been given, and for a moment in which the program may act on it. It waits for as long as the
// program took then between that answer and the one before it in its conversation, and two seconds. So it does for a process that had
// ended while the answer came, where that runs, for as long as it ran then and two seconds. One that went on, and ended before the next
// call, is given the time that it had had by the end of the answer, of maxHeadStart: else it would end behind that call. A wait in vain ends all others, and so does
// a call that nothing answers: the program is another one from there on.
type endOrder struct {
	before map[*Recorded]*Recorded      // who waits for whom; not changed
	during map[*Recorded][]endedProcess // which processes ended while an answer came, by their ends; not changed
	beside map[*Recorded][]endedProcess // which processes went on and ended before the next call; not changed
	prior  map[*Recorded]*Recorded      // of those that are waited for: the one before it in its conversation; not changed

	mu     sync.Mutex // guards what follows
	over   map[*Recorded]time.Time
	began  map[uint64]time.Time // processes that run
	gone   map[uint64]time.Time // processes that have ended
	left   chan struct{}        // closed when the next one ends; nil while nobody waits
	inVain bool
	lost   []string
}

// An endedProcess is a recorded process, by its spawn_id.
type endedProcess struct {
	id              uint64
	g               uint64
	endedMS, tookMS int64
}

// KeepOrder has the answers of conversations that went on beside each other end in the recorded order, as far as the program comes to
// them.
func (b *Book) KeepOrder() {
	lanes := make(map[string][]*Recorded)
	var all []*Recorded
	for _, rec := range b.recorded {
		if x := rec.Exchange; rec.Key.Kind == LLM && !rec.Key.Socket && x.Status != 0 && x.Error == "" && rec.g > 0 && rec.endedMS > 0 {
			all = append(all, rec)
			lanes[rec.Lane] = append(lanes[rec.Lane], rec)
		}
	}
	if mostBeside(lanes) > maxBeside {
		return
	}
	o := &endOrder{
		before: make(map[*Recorded]*Recorded), during: make(map[*Recorded][]endedProcess),
		beside: make(map[*Recorded][]endedProcess), prior: make(map[*Recorded]*Recorded),
		over: make(map[*Recorded]time.Time), began: make(map[uint64]time.Time), gone: make(map[uint64]time.Time),
	}
	slices.SortFunc(all, func(x, y *Recorded) int { return cmp.Compare(x.g, y.g) })
	o.findDuring(all, b.processes)
	for i := 1; i < len(all); i++ {
		rec, first := all[i], all[i-1]
		if rec.Lane != first.Lane && beside(lanes[rec.Lane], lanes[first.Lane]) {
			o.before[rec] = first
			rec.order, first.order = o, o
			if at := slices.Index(lanes[first.Lane], first); at > 0 {
				o.prior[first] = lanes[first.Lane][at-1]
				o.prior[first].order = o
			}
		}
	}
	if len(o.before)+len(o.during)+len(o.beside) > 0 {
		b.order = o
	}
}

// findDuring finds the processes that ended while an answer came, or between one that they had begun before and the next call. all stand
// by their ordinals.
func (o *endOrder) findDuring(all []*Recorded, processes []endedProcess) {
	for _, p := range processes {
		at, _ := slices.BinarySearchFunc(all, p.g, func(x *Recorded, g uint64) int { return cmp.Compare(x.g, g) })
		switch {
		case at == len(all):
		case all[at].begun() <= p.endedMS:
			o.during[all[at]] = append(o.during[all[at]], p)
			all[at].order = o
		case at > 0 && p.endedMS-p.tookMS < all[at-1].endedMS:
			o.beside[all[at-1]] = append(o.beside[all[at-1]], p)
			all[at-1].order = o
		}
	}
}

// ProcessBegan says that the recorded process of a spawn_id runs again, ProcessEnded that it has ended.
func (b *Book) ProcessBegan(id uint64) {
	if o := b.order; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.began[id] = time.Now()
	}
}

// ProcessEnded is the other half of ProcessBegan.
func (b *Book) ProcessEnded(id uint64) {
	if o := b.order; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.began, id)
		o.gone[id] = time.Now()
		o.wake()
	}
}

// begun is when a request came, or later, in ms since the run began.
func (r *Recorded) begun() int64 {
	if n := len(r.Exchange.Stream); n > 0 {
		return r.endedMS - r.Exchange.Stream[n-1].TMS
	}
	return r.endedMS
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
	for _, lane := range lanes {
		begun, ended := laneSpan(lane)
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

// await waits until the answer of rec may end. The error is ctx's where that is done before.
func (o *endOrder) await(ctx context.Context, rec *Recorded, paced bool) error {
	if o == nil || o.before[rec] == nil && o.during[rec] == nil && o.beside[rec] == nil {
		return nil
	}
	asked := time.Now()
	for {
		w := o.next(rec, asked, paced)
		if w == nil {
			break
		}
		timer := time.NewTimer(time.Until(w.limit))
		select {
		case <-w.wake:
		case <-timer.C:
			o.lose(rec, w.who)
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return sleep(ctx, o.remaining(rec, paced))
}

// A waiting is what an answer waits for.
type waiting struct {
	wake  <-chan struct{} // closed when something has ended
	limit time.Time
	who   string
}

// next returns what rec, which was asked for at a time, still waits for; nil for nothing.
func (o *endOrder) next(rec *Recorded, asked time.Time, paced bool) *waiting {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inVain {
		return nil
	}
	w := &waiting{}
	if first := o.before[rec]; first != nil && o.over[first].IsZero() {
		w.limit, w.who = o.limit(first, asked, paced), nameOf(first)
	}
	for _, p := range o.during[rec] {
		if began := o.began[p.id]; !began.IsZero() && w.who == "" {
			w.limit, w.who = began.Add(time.Duration(p.tookMS)*time.Millisecond+companySlack), fmt.Sprintf("process %d", p.id)
		}
	}
	if w.who == "" {
		return nil
	}
	if o.left == nil {
		o.left = make(chan struct{})
	}
	w.wake = o.left
	return w
}

// limit is until when first is waited for. The caller holds mu.
func (o *endOrder) limit(first *Recorded, asked time.Time, paced bool) time.Time {
	prior := o.prior[first]
	if prior == nil {
		return asked.Add(companySlack)
	}
	took := first.begun() - prior.endedMS
	if paced {
		took = first.endedMS - prior.endedMS
	}
	if ended, ok := o.over[prior]; ok {
		asked = ended
	}
	return asked.Add(time.Duration(max(took, 0))*time.Millisecond + companySlack)
}

// remaining is what is left of the moment that the program has to act on what ended before rec.
func (o *endOrder) remaining(rec *Recorded, paced bool) (left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pause := func(ended time.Time, endedMS int64) {
		if !ended.IsZero() {
			left = max(left, min(reaction, reactionTo(rec.endedMS-endedMS, paced))-time.Since(ended))
		}
	}
	if first := o.before[rec]; first != nil {
		pause(o.over[first], first.endedMS)
	}
	for _, p := range o.during[rec] {
		pause(o.gone[p.id], p.endedMS)
	}
	for _, p := range o.beside[rec] {
		if began := o.began[p.id]; !began.IsZero() && !o.inVain {
			had := time.Duration(rec.endedMS-(p.endedMS-p.tookMS)) * time.Millisecond
			left = max(left, min(had-time.Since(began), maxHeadStart))
		}
	}
	return left
}

// leave notes that the answer of rec has been given.
func (o *endOrder) leave(rec *Recorded) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ended := o.over[rec]; !ended {
		o.over[rec] = time.Now()
		o.wake()
	}
}

// lose notes that rec was not held up for long enough, and ends all waiting.
func (o *endOrder) lose(rec *Recorded, who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.inVain {
		return
	}
	o.lost = append(o.lost, fmt.Sprintf("the recorded order was not kept from %s on: its answer had ended after %s, which did not come to its end in time",
		nameOf(rec), who))
	o.inVain = true
	o.wake()
}

// giveUp ends all waiting.
func (o *endOrder) giveUp() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inVain = true
	o.wake()
}

// wake wakes whoever waits. The caller holds mu.
func (o *endOrder) wake() {
	if o.left != nil {
		close(o.left)
		o.left = nil
	}
}

// OrderLost says where the recorded order could not be kept.
func (b *Book) OrderLost() []string {
	if b.order == nil {
		return nil
	}
	b.order.mu.Lock()
	defer b.order.mu.Unlock()
	return slices.Clone(b.order.lost)
}
