package fidelity

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Requests that one thread made in both runs one after the other, each once the one before had ended, follow from each other, and so do
// processes that one parent started, of which those of a pipeline are under way at once: another order of them is another program. A runtime with a monotonic clock of its own is another matter:
// its timers start processes as chance has it. Where two of a thread were under way at once their order may be chance. Of a tape that does not
// tell who asked, plain requests count as those of one thread; what such ones ask of one host in another order is a note, and so is what they ask
// of models: those are asked side by side more often than not.

// numberOf is what a record has under a key; 0 for nothing.
func numberOf(rec *tape.Record, key string) uint64 {
	extra := tape.Extras(rec.Kind)
	if extra == nil {
		return 0
	}
	n, _ := tape.FieldNumber(*extra, key)
	return n
}

// An origin is who made requests, or started processes.
type origin struct {
	of originKind
	id uint64 // 0 where that is not known
}

type originKind uint8

const (
	requests  originKind = iota
	questions            // to models, where it is not known who asks
	processes
)

// ordering compares in which order records came.
type ordering struct {
	*comparison
	pairs map[origin][]pair       // requests and processes that both sides have
	said  map[origin]int          // notes
	forks map[*tape.Record]uint64 // of processes that forks live on as: when the fork began
}

// keep keeps a pair of requests by who made them, and of processes by who started them.
func (c *ordering) keep(p pair) {
	if c.mode == Outcome || p.a.rec.Kind.Name() != p.b.rec.Kind.Name() {
		return
	}
	var by origin
	switch k := p.a.rec.Kind.(type) {
	case *tape.HTTPExchange:
		by.id = numberOf(p.a.rec, tape.OpenerKey)
	case *tape.LLMCall:
		if by.id = numberOf(p.a.rec, tape.OpenerKey); by.id == 0 {
			by.of = questions
		}
	case *tape.ProcessSpawn:
		if by = (origin{processes, k.ParentSpawnID}); by.id == 0 || tape.OriginOf(k) != 0 || tape.FieldValue(k.Extra, tape.ForkedKey) != nil {
			return
		}
	default:
		return
	}
	c.pairs[by] = append(c.pairs[by], p)
}

// compare reports of each origin the first request, or process, that came before one which it had followed.
func (c *ordering) compare() {
	recorded, replayed := func(p pair) *tape.Record { return p.a.rec }, func(p pair) *tape.Record { return p.b.rec }
	c.findForks()
	for _, by := range slices.SortedFunc(maps.Keys(c.pairs), origin.compare) {
		all := c.pairs[by]
		if !slices.ContainsFunc(all, datedPair) {
			continue
		}
		was, now := c.stretches(all, recorded), c.stretches(all, replayed)
		if by.of != processes {
			atOnce := overlapping(was)
			maps.Copy(atOnce, overlapping(now))
			conversations := conversationsOf(atOnce)
			all = slices.DeleteFunc(all, func(p pair) bool {
				return atOnce[p.a.rec] || atOnce[p.b.rec] || conversations[LaneOf(p.a.rec.Kind)]
			})
			was, now = c.stretches(all, recorded), c.stretches(all, replayed)
		}
		for first, earlier := range displaced(was, now) {
			if c.followed(first, earlier, by) {
				break
			}
		}
	}
}

// passed finds of each request that the replay never made what it made of those that the same thread, or process, had asked for once that had ended,
// in whichever conversation: it had come past it by then.
func (c *ordering) passed() {
	after := make(map[origin][]pair) // as they came; each with the first of those behind it that the replay made
	for i := range c.found {
		p := &c.found[i]
		by := origin{id: openerOf(p)}
		if by.id == 0 {
			continue
		}
		all, ok := after[by]
		if !ok {
			all = inOrder(c.pairs[by], func(p pair) uint64 { return begunAt(p.a.rec) })
			for i := len(all) - 2; i >= 0; i-- {
				if all[i+1].b.at < all[i].b.at {
					all[i].b = all[i+1].b
				}
			}
			after[by] = all
		}
		at, _ := slices.BinarySearchFunc(all, endedAt(p.rec)+1, func(p pair, at uint64) int { return cmp.Compare(begunAt(p.a.rec), at) })
		if at < len(all) {
			p.next = all[at].b.at
		}
	}
}

// openerOf is who had asked for what the replay never did; 0 where that is not known, or for another divergence.
func openerOf(p *placed) uint64 {
	if p.rank != 1 {
		return 0
	}
	return numberOf(p.rec, tape.OpenerKey)
}

// displaced gives each request, or process, of a stretch after one of an earlier stretch that had come in a later one: the last such one, and the
// last of another host.
func displaced(was, now [][]pair) iter.Seq2[pair, pair] {
	rank := make(map[pair]int)
	for i, stretch := range was {
		for _, p := range stretch {
			rank[p] = i + 1
		}
	}
	return func(yield func(first, earlier pair) bool) {
		var last, other ranked // of two hosts, by their ranks
		for _, stretch := range now {
			for _, p := range stretch {
				for _, q := range [...]ranked{last, other} {
					if q.rank > rank[p] && !yield(p, q.pair) {
						return
					}
				}
			}
			for _, p := range stretch {
				is := ranked{p, hostOf(p), rank[p]}
				switch {
				case is.rank > last.rank && is.host != last.host:
					last, other = is, last
				case is.rank > last.rank:
					last = is
				case is.rank > other.rank && is.host != last.host:
					other = is
				}
			}
		}
	}
}

// ranked is a pair with its host and in which stretch it was recorded, from 1.
type ranked struct {
	pair
	host string
	rank int
}

// conversationsOf are the lanes of model calls. What goes on with a conversation of which calls were under way together with others follows
// from that conversation alone.
func conversationsOf(recs map[*tape.Record]bool) map[string]bool {
	lanes := make(map[string]bool)
	for rec := range recs {
		if _, model := rec.Kind.(*tape.LLMCall); model {
			lanes[LaneOf(rec.Kind)] = true
		}
	}
	return lanes
}

// followed says that earlier came before first, and returns whether that gates.
func (c *ordering) followed(first, earlier pair, by origin) bool {
	if by.of == questions || by.id == 0 && hostOf(first) == hostOf(earlier) {
		c.chance(by, "another order: %s comes before %s, which it followed; nobody knows who asked, so that does not gate",
			describe(earlier.b.rec.Kind), describe(first.a.rec.Kind))
		return false
	}
	if by.of == processes && (c.ownTicks(Recorded, first.a.rec) || c.ownTicks(Replay, first.b.rec)) {
		c.chance(by, "process order: %s comes before %s, which it followed; the runtime that started them has timers of its own, so that does not gate",
			subjectOf(earlier.b.rec.Kind), subjectOf(first.a.rec.Kind))
		return false
	}
	category := HTTPOrder
	if by.of == processes {
		category = ProcessOrder
	}
	c.placeOrder(category, LaneOf(earlier.b.rec.Kind), first, earlier)
	return true
}

// maxOrderNotes bounds how often it is said of one origin that its order does not gate.
const maxOrderNotes = 20

// chance notes an order that does not gate.
func (c *ordering) chance(by origin, format string, args ...any) {
	if c.said[by]++; c.said[by] <= maxOrderNotes {
		c.note(format, args...)
	}
}

// placeOrder reports that earlier came before first.
func (c *ordering) placeOrder(category Category, lane string, first, earlier pair) {
	p := placed{at: earlier.b.at, rec: earlier.b.rec, Divergence: Divergence{
		Category: category, Lane: lane, Seq: new(earlier.a.rec.Seq), ReplaySeq: new(earlier.b.rec.Seq),
		Recorded: describe(earlier.a.rec.Kind), Replay: describe(earlier.b.rec.Kind),
	}}
	p.Message = fmt.Sprintf("another order: %s comes before %s, which it followed", apart(earlier.b.rec.Kind, first.a.rec.Kind)...)
	if tape.ExchangeOf(first.a.rec.Kind) != nil && !c.spent() { // which of them came there then, and which does now
		changes, _ := c.requestChanges(first.a.rec, earlier.b.rec)
		p.show(changes)
	}
	c.place(p)
}

// apart are the subjects of two records. Those that are cut before they differ are shown from shortly before that.
func apart(a, b tape.Kind) []any {
	is, other := subjectOf(a), subjectOf(b)
	if x, y := aboutOf(a).shown, aboutOf(b).shown; is == other && x != y {
		at := 0
		for at < min(len(x), len(y)) && x[at] == y[at] {
			at++
		}
		cut := func(s string) string {
			const begin, before, rest = 30, 20, 60
			return bodies.Cut(s, min(begin, at)) + bodies.Cut(s[bodies.CutAt(s, max(begin, at-before)):], rest)
		}
		is, other = cut(x), cut(y)
	}
	return []any{is, other}
}

// ownTicks reports whether the parent of a process has the kernel's monotonic clock in both runs.
func (c *ordering) ownTicks(s Side, child *tape.Record) bool {
	k, _ := child.Kind.(*tape.ProcessSpawn)
	for e := range c.sides[s].records(ofProcess) {
		if p, ok := e.spawn(); ok && p.SpawnID == k.ParentSpawnID && tape.HasFlag(p, tape.OwnTicksKey) {
			return true
		}
	}
	return false
}

func (d origin) compare(e origin) int {
	return cmp.Or(cmp.Compare(d.of, e.of), cmp.Compare(d.id, e.id))
}

// hostOf is the host that is asked; "" of a process.
func hostOf(p pair) string {
	if ex := tape.ExchangeOf(p.a.rec.Kind); ex != nil {
		return tape.HostOf(ex.URL)
	}
	return ""
}

// begunAt is when a request came, as an ordinal; 0 where its tape does not tell.
func begunAt(rec *tape.Record) uint64 { return numberOf(rec, tape.PlaceKey) }

// datedPair reports whether both tapes tell when a request came.
func datedPair(p pair) bool { return begunAt(p.a.rec) != 0 && begunAt(p.b.rec) != 0 }

// endedAt is when a request or a process had ended.
func endedAt(rec *tape.Record) uint64 { return cmp.Or(numberOf(rec, tape.OverKey), rec.G) }

// inOrder sorts pairs by when the requests of one side came.
func inOrder(pairs []pair, begun func(pair) uint64) []pair {
	out := slices.Clone(pairs)
	slices.SortFunc(out, func(x, y pair) int { return cmp.Compare(begun(x), begun(y)) })
	return out
}

// findForks finds the processes that forks of their parent live on as: hostname of `( cat ID || hostname ) | head -n 1`, which is part of the
// pipeline from its begin on.
func (c *ordering) findForks() {
	type process struct {
		parent uint64
		pid    int
	}
	for s := range c.sides {
		forks := make(map[process][]*tape.Record)
		for e := range c.sides[s].records(ofProcess) {
			if k, ok := e.spawn(); ok && tape.HasFlag(k, tape.ForkedKey) && tape.HasFlag(k, tape.AgainKey) {
				is := process{k.ParentSpawnID, k.PID}
				forks[is] = append(forks[is], e.rec)
			}
		}
		for e := range c.sides[s].records(ofProcess) {
			k, ok := e.spawn()
			if !ok || tape.HasFlag(k, tape.ForkedKey) {
				continue
			}
			for _, fork := range forks[process{k.ParentSpawnID, k.PID}] {
				if at := begunAt(e.rec); begunAt(fork) < at && at <= endedAt(fork) { // else another process had this PID
					c.forks[e.rec] = begunAt(fork)
				}
			}
		}
	}
}

// stretches are the requests, or processes, of one side in their order, parted where none was under way. Those of which a tape does not tell when they
// came are left out.
func (c *ordering) stretches(pairs []pair, of func(pair) *tape.Record) (out [][]pair) {
	begun := func(p pair) uint64 { return cmp.Or(c.forks[of(p)], begunAt(of(p))) }
	ended := uint64(0)
	for _, p := range inOrder(pairs, begun) {
		if !datedPair(p) {
			continue
		}
		if len(out) == 0 || begun(p) >= ended {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
		ended = max(ended, endedAt(of(p)))
	}
	return out
}

// overlapping are the requests of both sides that were under way together with another on one.
func overlapping(all [][]pair) map[*tape.Record]bool {
	out := make(map[*tape.Record]bool)
	for _, stretch := range all {
		for _, p := range stretch {
			if len(stretch) > 1 {
				out[p.a.rec], out[p.b.rec] = true, true
			}
		}
	}
	return out
}

// callOrder says that records of a lane came in another order: of calls of a tool server that in both runs had been answered before the
// other was asked, as a divergence; of others as a note, for their order may be chance.
func (c *ordering) callOrder(lane string, pairs []pair, moved int) {
	for _, p := range pairs {
		i := slices.IndexFunc(pairs, func(q pair) bool { return p.moved && p.b != nil && q.a != nil && q.b != nil && crosses(p, q) })
		if i < 0 {
			continue
		}
		first, earlier := pairs[i], p
		if answeredBefore(p.a, first.a) {
			first, earlier = earlier, first
		}
		c.placeOrder(MCPOrder, lane, first, earlier)
		return
	}
	c.note("lane %s: %s came in another order, the first %s", lane, counted(moved, "record"), firstMoved(pairs, c.o.Sides))
}

// crosses reports whether two calls follow from each other in both runs, but not in one order.
func crosses(p, q pair) bool {
	return answeredBefore(p.a, q.a) && answeredBefore(q.b, p.b) || answeredBefore(q.a, p.a) && answeredBefore(p.b, q.b)
}

// answeredBefore reports whether a call of a tool server had its answer before another of its conversation was made.
func answeredBefore(x, y *entry) bool {
	a, b := callOf(x.rec), callOf(y.rec)
	return a != nil && b != nil && a.From != fromServer && b.From != fromServer && a.Conversation == b.Conversation &&
		a.Answered > 0 && a.Answered < b.Arrival
}

// firstMoved names the first record that came in another order.
func firstMoved(pairs []pair, names sideNames) string {
	for _, p := range pairs {
		if p.moved {
			return fmt.Sprintf("%s seq %d, %s seq %d: %s", names.of(Recorded), p.a.rec.Seq, names.of(Replay), p.b.rec.Seq,
				describe(p.a.rec.Kind))
		}
	}
	return "none"
}
