package files

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	// youngTime is how long after a touch a path stays in the set that is looked at: the call itself comes after it.
	youngTime = time.Second
	// batch is how many paths are looked at before their records are given on.
	batch = 64
)

// An item is a path that is looked at in a barrier. There may be very many at once: what is seen of it is there only until its
// record was given on.
type item struct {
	root *journalRoot
	n    *node   // nil where no call named it
	rel  string  // below the root
	path string  // of the record
	told *Change // what the snapshots at the end say, which decides; nil where the path itself is looked at
	*look
}

// Barrier returns what became of the touched paths since the last barrier, as records of the kinds file_write and file_delete,
// sorted by path; only Kind and Raw are set. What stands at a path as it did then gives none. Before them come the states that
// stood in between until a call ended them, sorted by path as well, with the further key "whole":true. Paths of the work tree that its
// snapshot would not cover have the further key "ignored":true.
//
// A path leaves the set that is looked at once nobody has its file open for writing and it was not touched for a second. The
// first error is the store's; it ends the sequence, as does a consumer that stops: what was not given is looked at again.
func (j *Journal) Barrier() iter.Seq2[tape.Record, error] {
	return j.barrier(anybody)
}

// BarrierOf is Barrier for the paths that were touched last by one alone (Touch.By).
func (j *Journal) BarrierOf(by uint32) iter.Seq2[tape.Record, error] {
	return j.barrier(func(n *node) bool { return n.by == by })
}

func (j *Journal) barrier(wanted func(*node) bool) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		if j.play(j.takeEnded(wanted), yield) {
			j.play(j.collect(false, wanted), yield)
		}
	}
}

func sortItems(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int { return strings.Compare(a.path, b.path) })
}

func anybody(*node) bool { return true }

// collect takes the items whose nodes are wanted out of the set, sorted by path.
func (j *Journal) collect(final bool, wanted func(*node) bool) []*item {
	j.spread()
	j.mu.Lock()
	defer j.mu.Unlock()
	if final {
		j.markKnown()
	}
	var items []*item
	now := j.ms(time.Now())
	for _, r := range j.roots {
		r.node.dirty(func(n *node) {
			if n.taken != nil || n.up == nil || !wanted(n) {
				n.mark()
				return
			}
			rel := n.path()
			it := &item{root: r, n: n, rel: rel, path: r.rec.place(rel)}
			n.state &^= isDirty
			if young := now-n.at < uint32(youngTime.Milliseconds()); young && !final {
				n.mark()
			}
			r.rules.forget(rel)
			items = append(items, it)
		})
	}
	sortItems(items)
	return j.shown(items)
}

// markKnown marks what is known and what no snapshot tells of, for want of room too: a call may have taken effect long after it was told of, and a write to
// a mapping may have moved no time.
func (j *Journal) markKnown() {
	for _, r := range j.roots {
		r.node.each(func(n *node) {
			if n.up != nil && n.is(isKnown) && (r.Tree == nil || n.is(isIgnored) || j.left[n] == TooLarge) {
				n.mark()
				n.state &^= isSure
			}
		})
	}
}

// shown drops the items whose path holds a secret, and lists them. All paths are scanned at once, because hardly any does.
func (j *Journal) shown(items []*item) []*item {
	if j.o.Scrubber == nil || len(items) == 0 {
		return items
	}
	var all strings.Builder
	for _, it := range items {
		all.WriteString(it.path + "\n")
	}
	if _, found := j.o.Scrubber.Bytes([]byte(all.String())); !found {
		return items
	}
	return slices.DeleteFunc(items, func(it *item) bool {
		_, found := j.o.Scrubber.Bytes([]byte(it.path))
		if found && it.n != nil { // what the snapshots alone tell of, they list
			j.left[it.n] = SecretName
		}
		return found
	})
}

// spread finds what lies below directories that came from elsewhere with what they hold.
func (j *Journal) spread() {
	j.mu.Lock()
	var deep []*node
	for _, r := range j.roots {
		r.node.deep(&deep, j.ms(time.Now()))
	}
	paths := make([]string, len(deep))
	for i, n := range deep {
		paths[i] = n.path()
	}
	j.mu.Unlock()
	for i, n := range deep {
		if f, err := n.root.top.open(paths[i]); err == nil {
			j.list(n, f)
			f.close()
		}
	}
}

// list marks everything below n, which is f.
func (j *Journal) list(n *node, f folder) {
	names, err := f.names()
	if err != nil {
		return
	}
	var dirs []*node
	j.mu.Lock()
	abs := n.abs()
	for _, name := range names {
		state := n.state &^ isKnown
		if c := n.below[name]; c != nil {
			state = c.state
		}
		if state&(isKnown|isFresh|losesBelow) == 0 || j.isExcluded(abs+"/"+name) {
			continue // it stood here before, for the rename that should have brought others failed
		}
		c := n.child(name)
		if !c.is(isKnown) {
			_, _ = j.keep(c, f, name, nil) // it is fresh, or lost: nothing is read
		}
		c.mark()
		dirs = append(dirs, c)
	}
	j.mu.Unlock()
	for _, c := range dirs {
		sub, err := f.open(c.name)
		if err != nil {
			continue
		}
		j.list(c, sub)
		sub.close()
	}
}

// play looks at items and gives their records on. It reports whether more is wanted.
func (j *Journal) play(items []*item, yield func(tape.Record, error) bool) bool {
	for i := 0; i < len(items); i += batch {
		some := items[i:min(i+batch, len(items))]
		j.lookAll(some)
		for k, it := range some {
			rec, ok, err := j.settle(it)
			it.look = nil
			if err != nil {
				j.again(items[i+k:])
				yield(tape.Record{}, err)
				return false
			}
			if ok && !yield(rec, nil) {
				j.again(items[i+k+1:])
				return false
			}
		}
	}
	return true
}

// again puts items back into the set.
func (j *Journal) again(items []*item) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, it := range items {
		if it.n != nil {
			it.n.mark()
		}
	}
}

// lookAll looks at some items side by side.
func (j *Journal) lookAll(some []*item) {
	var wg sync.WaitGroup
	part := (len(some) + numWorkers() - 1) / numWorkers()
	for mine := range slices.Chunk(some, max(part, 1)) {
		wg.Go(func() {
			l := looker{j: j}
			defer l.at.leave()
			for _, it := range mine {
				if it.look == nil { // else it ended, and was looked at then
					it.look = &look{}
					l.one(it)
				}
			}
		})
	}
	wg.Wait()
}

// End is the last Barrier, once the program has ended. In the work tree after, a snapshot, says what stands there, of paths that
// no call named too: played on the tree that the run found (After), all records together give what Git sees of it. after is nil
// where none was taken.
func (j *Journal) End(after *Tree) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		if !j.play(j.takeEnded(anybody), yield) {
			return
		}
		j.final = true
		items := j.collect(true, anybody)
		for _, r := range j.roots {
			if r.Tree != nil && after != nil {
				r.after = after
				items = j.decide(r, items)
			}
		}
		sortItems(items)
		j.play(j.shown(items), yield)
	}
}

// decide replaces the items of a work tree by those that its snapshots give, but for those that the snapshots do not cover.
func (j *Journal) decide(r *journalRoot, items []*item) []*item {
	covers := func(path string) bool { return r.Tree.Covers(path) && r.after.Covers(path) }
	items = slices.DeleteFunc(items, func(it *item) bool { return it.root == r && covers(it.rel) })
	looked := make(map[*node]bool)
	for _, it := range items {
		looked[it.n] = true
	}
	nodes := make(map[string]*node)
	j.mu.Lock()
	r.node.each(func(n *node) {
		if n.up == nil || n.last == n.start && !n.is(isIgnored) {
			return
		}
		path := n.path()
		if covers(path) {
			nodes[path] = n
		} else if !looked[n] && r.Tree.Covers(path) {
			// What the records so far say of it counts no more.
			items = append(items, &item{root: r, n: n, rel: path, path: r.rec.place(path)})
		}
	})
	j.mu.Unlock()
	for _, c := range Changes(r.said.tree(), r.after) {
		it := &item{root: r, n: nodes[c.Path], rel: c.Path, path: r.rec.place(c.Path), told: &c}
		items = append(items, it)
	}
	return items
}

// A state that stands at a path for a while only, because a call cuts, deletes or replaces it before the next barrier, is looked
// at when that call is made. Records of such states are marked, and so is the one behind a state that a barrier had seen already:
// chance did not decide that it was seen, so two runs that differ in it differ.

// maxEnded is the length in bytes of the longest file of which a state that ends is kept.
const maxEnded = 8 << 20

// wholeKey is the key of a file record that marks a state which a call ended, or the record behind one.
const wholeKey = "whole"

// ends returns what looks at n, whose state is about to end; nil where no record would come of it. It is called under mu.
func (j *Journal) ends(n *node) (then func() error) {
	switch {
	case !n.is(isKnown) || n.taken != nil || n.up == nil:
		return nil
	case !n.is(isDirty):
		j.endsAsSeen(n)
		return nil
	}
	it := &item{root: n.root, n: n, rel: n.path(), look: &look{whole: true}}
	it.path = n.root.rec.place(it.rel)
	return func() error {
		l := looker{j: j, most: maxEnded}
		defer l.at.leave()
		l.one(it)
		if _, skipped := reasonOf(it.err); skipped || errors.Is(it.err, errGone) {
			return nil
		}
		it.text = nil // there may be many: the store has it
		j.mu.Lock()
		defer j.mu.Unlock()
		j.ended = append(j.ended, it)
		return it.err
	}
}

// endsAsSeen notes that the state which the last barrier saw at n is about to end. What the run found there is no state of its own.
func (j *Journal) endsAsSeen(n *node) {
	if !SameEntry(n.start, n.last) {
		n.state |= wasWhole
	}
}

// takeEnded takes the states that ended, of the nodes that are wanted, sorted by path; those of one path as they came.
func (j *Journal) takeEnded(wanted func(*node) bool) []*item {
	j.mu.Lock()
	var mine, rest []*item
	for _, it := range j.ended {
		if wanted(it.n) {
			mine = append(mine, it)
		} else {
			rest = append(rest, it)
		}
	}
	j.ended = rest
	j.mu.Unlock()
	sortItems(mine)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shown(mine)
}

// settle takes in what was seen of an item, and returns its record; ok is false where there is none.
func (j *Journal) settle(it *item) (rec tape.Record, ok bool, err error) {
	why, skipped := reasonOf(it.err)
	switch {
	case it.err == nil, errors.Is(it.err, errGone):
	case skipped && (why == Special && it.root.Tree == nil || it.isForgotten()):
		it.now = nil // a file that stood there does no more, or no more counts
	case skipped:
		j.leave(it, why)
		return rec, false, nil
	default:
		return rec, false, fmt.Errorf("files: %s: %w", it.path, it.err)
	}
	ignored := it.isIgnored()
	whole := j.take(it, ignored)
	if skipped {
		j.leave(it, why)
	}
	if !it.isNews(ignored) {
		if it.whole {
			j.mu.Lock()
			j.endsAsSeen(it.n)
			j.mu.Unlock()
		}
		return rec, false, nil
	}
	rec, err = j.record(it, ignored, whole)
	if err == nil && it.root.said != nil {
		err = it.root.said.play(&rec)
	}
	if err != nil {
		return rec, false, fmt.Errorf("files: record of %s: %w", it.path, err)
	}
	return rec, true, nil
}

// leave notes that what stands at a path is not kept. The path counts as it was.
func (j *Journal) leave(it *item, why Reason) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left[it.n] = why
	if it.long != "" && it.n != nil {
		j.long[it.n] = it.long
	}
	if it.held {
		it.n.mark()
	}
}

// take takes in what stands at the path of an item. whole says that a call ended that, or the state of the record before.
func (j *Journal) take(it *item, ignored bool) (whole bool) {
	n := it.n
	if n == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	it.before = n.last // states that ended came in between
	if whole = it.whole || n.is(wasWhole); it.isNews(ignored) {
		n.state &^= wasWhole
	}
	delete(j.left, n)
	n.state &^= isIgnored
	if ignored {
		n.state |= isIgnored
	}
	if n.is(isShared) && n.ino == it.stamp.ino && !SameEntry(it.before, it.now) {
		j.linked[n] = true
	}
	n.last = it.now
	n.state &^= isHeld | isSure
	n.stamp = nil
	if it.now == nil || !it.now.Mode.IsRegular() || it.told != nil {
		return whole
	}
	st := it.stamp
	n.stamp = &st
	if it.sure {
		n.state |= isSure
	}
	if it.held {
		n.state |= isHeld
		n.mark()
	}
	return whole
}

// isIgnored reports whether an item lies in the work tree without being covered by its snapshot.
func (it *item) isIgnored() bool {
	r := it.root
	switch {
	case r.Tree == nil:
		return false
	case !r.Tree.Covers(it.rel):
		return true
	case r.after != nil:
		return !r.after.Covers(it.rel)
	}
	isDir := it.now != nil && it.now.Mode.IsDir() || it.now == nil && it.before != nil && it.before.Mode.IsDir()
	return r.rules.ignores(it.rel, isDir)
}

// isForgotten reports whether the records say something of a path that the snapshots do not cover: it counts no more.
func (it *item) isForgotten() bool {
	r := it.root
	return r.after != nil && r.Tree.Covers(it.rel) && !it.root.saysAsFound(it.rel)
}

// isNews reports whether an item needs a record: what stands there is not what the records so far say. Those of an ignored
// path say that the work tree is there as it was found.
func (it *item) isNews(ignored bool) bool {
	switch {
	case it.root.Tree == nil:
		return !SameEntry(it.before, it.now)
	case ignored:
		return !SameEntry(it.before, it.now) || !it.root.saysAsFound(it.rel)
	}
	return !SameEntry(it.root.said.get(it.rel), it.now)
}

// record returns the record of an item.
func (j *Journal) record(it *item, ignored, whole bool) (tape.Record, error) {
	r := it.root.rec
	if it.now != nil {
		r.hand = inHand{digest: it.now.Digest, text: it.text}
	}
	rec, err := r.between(it.rel, it.before, it.now)
	if err != nil {
		return rec, err
	}
	extra := tape.Extras(rec.Kind)
	if ignored {
		*extra = append(*extra, tape.Field{Name: ignoredKey, Value: []byte("true")})
	}
	if whole {
		*extra = append(*extra, tape.Field{Name: wholeKey, Value: []byte("true")})
	}
	if by := j.by(it.n); by != 0 {
		*extra = append(*extra, tape.Field{Name: ConversationKey, Value: strconv.AppendUint(nil, by, 10)})
	}
	return rec, nil
}

// by names who changed n last; 0 for the program, and where n is nil.
func (j *Journal) by(n *node) uint64 {
	if n == nil || j.o.By == nil {
		return 0
	}
	j.mu.Lock()
	by := n.by
	j.mu.Unlock()
	if by == 0 {
		return 0
	}
	return j.o.By(by)
}
