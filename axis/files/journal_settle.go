package files

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

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

// saysAsFound reports whether the records so far leave of a path what the snapshot from before the run has there.
func (r *journalRoot) saysAsFound(path string) bool {
	return SameEntry(r.said.get(path), r.inSnapshot(path))
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
	r := recorder{store: j.o.Staged, opts: it.root.opts}
	if it.now != nil {
		r.hand = inHand{digest: it.now.Digest, text: it.text, masked: it.masked}
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
