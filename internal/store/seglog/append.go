package seglog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// A block is a block that fills: room for its header, then records as they stand on the disk.
type block struct {
	buf   []byte
	first Pos
	done  []func(Pos, error)
}

// doneCost is what an append takes in memory besides its bytes.
const doneCost = 16

func (b *block) cost() int { return len(b.buf) + len(b.done)*doneCost }

func (b *block) add(record []byte, done func(Pos, error)) {
	b.buf = binary.AppendUvarint(b.buf, uint64(len(record)))
	b.buf = append(b.buf, record...)
	b.done = append(b.done, done)
}

// reset empties the block and lets go of more memory than a block of limit bytes needs.
func (b *block) reset(limit int) {
	if cap(b.buf) > 2*limit {
		b.buf = nil
	}
	clear(b.done) // what they hold may go
	b.buf, b.done = append(b.buf[:0], make([]byte, blockHeader)...), b.done[:0]
}

func newBlock() *block {
	b := &block{}
	b.reset(0)
	return b
}

// A waiter is an Append for which there was no room.
type waiter struct {
	epoch  Epoch
	record []byte
	done   func(Pos, error)
	result chan error // one value, when it is queued or refused
}

// Append queues a copy of record, behind everything that was queued before. It waits while the queue is full, until ctx is
// done. On an error nothing is queued and done is never called.
//
// Done is called once: with the record's position, when it and everything before it is on the disk; or with an error, when
// it is not and will not be, except after ErrFailed, when nobody knows. Calls of done come one after another in the order of
// the queue, from the committer, which writes nothing meanwhile: a done that takes long delays everybody, and one that waits
// for another append waits for ever. Done must not call Append.
//
// When a write fails (a full disk), all that is queued fails, and a new epoch begins, in which the log takes appends again.
// An append whose epoch is not the log's is refused with ErrEpoch: it may have been built on what has just failed (the next
// number of a series, say). So: lock, take what was last acknowledged and Epoch, once; then append with that epoch until
// ErrEpoch or a failed done says to begin again. Epoch 0 means any.
func (l *Log) Append(ctx context.Context, epoch Epoch, record []byte, done func(Pos, error)) error {
	if len(record) > MaxRecord {
		return ErrTooLarge
	}
	l.mu.Lock()
	if err := l.refuse(epoch); err != nil {
		l.mu.Unlock()
		return err
	}
	if len(l.waiting) == 0 && l.fits(record) {
		l.add(record, done)
		l.mu.Unlock()
		return nil
	}
	w := &waiter{epoch, record, done, make(chan error, 1)}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	return l.await(ctx, w)
}

// refuse says why an append of an epoch cannot be queued. The caller holds mu.
func (l *Log) refuse(epoch Epoch) error {
	switch {
	case l.failed != nil:
		return l.failed
	case epoch != 0 && epoch != l.epoch:
		return ErrEpoch
	case l.closing:
		return ErrClosed
	}
	return nil
}

// fits says whether the block that fills has room for record. An empty one has for any. The caller holds mu.
func (l *Log) fits(record []byte) bool {
	return len(l.filling.done) == 0 || l.filling.cost()+len(record)+maxVarint+doneCost+1 <= l.o.MaxBlock
}

// add queues a record. The caller holds mu.
func (l *Log) add(record []byte, done func(Pos, error)) {
	if len(l.filling.done) == 0 {
		l.filling.first = l.next
		l.arrived.Signal()
	}
	l.filling.add(record, done)
	l.next++
}

// await returns when w is queued or refused, or takes it back when ctx ends first.
func (l *Log) await(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return context.Cause(ctx)
	}
	return <-w.result // it was decided already
}

// admit queues those that wait, in their order, as far as there is room. The caller holds mu.
func (l *Log) admit() {
	n := 0
	for _, w := range l.waiting {
		if !l.fits(w.record) {
			break
		}
		l.add(w.record, w.done)
		w.result <- nil
		n++
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

// take waits for appends and returns all that are queued, or nil when the log is closing and there are none.
func (l *Log) take() *block {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.filling.done) == 0 && !l.closing {
		l.arrived.Wait()
	}
	if len(l.filling.done) == 0 {
		return nil
	}
	b := l.filling
	l.filling, l.spare = l.spare, nil
	l.admit()
	return b
}

// giveBack returns a block that take gave.
func (l *Log) giveBack(b *block) {
	b.reset(l.o.MaxBlock)
	l.mu.Lock()
	l.spare = b
	l.mu.Unlock()
}

// commit is the committer: it brings one block after another to the disk until the log is closed.
func (l *Log) commit() {
	defer close(l.ended)
	for {
		b := l.take()
		if b == nil {
			l.closeErr = l.finish()
			return
		}
		batch, err := l.write(b)
		if err != nil {
			l.fail(b, err)
			continue
		}
		l.advance(batch)
		if l.o.Committed != nil {
			l.o.Committed(batch)
		}
		for i, done := range b.done {
			done(b.first+Pos(i), nil)
		}
		l.giveBack(b)
	}
}

// write brings a block to the disk, in a new segment where the last one is full.
func (l *Log) write(b *block) (Batch, error) {
	w := &l.writer
	b.buf = append(b.buf, trailer)
	if w.full(len(b.buf)) {
		if err := l.rotate(b.first); err != nil {
			return Batch{}, err
		}
	}
	writing, syncing, err := w.write(b)
	return Batch{b.first, len(b.done), len(b.buf), writing, syncing}, err
}

func (l *Log) rotate(first Pos) error {
	s, err := l.writer.rotate(first)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.segments = append(l.segments, s)
	l.durable = place{first, segmentHeader}
	l.mu.Unlock()
	if l.o.Rotated != nil {
		l.o.Rotated(first)
	}
	return nil
}

// advance makes a block part of what Records and End show.
func (l *Log) advance(b Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = place{b.First + Pos(b.Records), l.writer.end}
	s := &l.stats
	s.Blocks++
	s.Records += uint64(b.Records)
	s.Bytes += uint64(b.Bytes)
	s.Write += b.Write
	s.Sync += b.Sync
}

// fail ends an epoch: the block that could not be written fails, and all that was queued behind it. After ErrFailed there is
// no further epoch.
func (l *Log) fail(b *block, err error) {
	err = fmt.Errorf("append to the log in %s: %w", l.dir, err)
	l.mu.Lock()
	behind := l.filling
	l.filling, l.spare = newBlock(), newBlock()
	l.next = l.durable.next
	l.epoch++
	if errors.Is(err, ErrFailed) {
		l.failed = err
	}
	l.refuseWaiting()
	l.admit()
	l.stats.Failed += uint64(len(b.done) + len(behind.done))
	l.mu.Unlock()
	l.o.Logger.Error("appends failed", "error", err, "appends", len(b.done)+len(behind.done), "last", l.writer.failed != nil)
	for _, done := range b.done {
		done(0, err)
	}
	for _, done := range behind.done {
		done(0, err)
	}
}

// refuseWaiting turns away those of the waiting that the new epoch does not take. The caller holds mu.
func (l *Log) refuseWaiting() {
	kept := l.waiting[:0]
	for _, w := range l.waiting {
		if err := l.refuse(w.epoch); err != nil && !errors.Is(err, ErrClosed) { // it came before Close
			w.result <- err
			continue
		}
		kept = append(kept, w)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// finish is the end of the committer.
func (l *Log) finish() error {
	err := l.writer.finish()
	if err != nil {
		return fmt.Errorf("close the log in %s: %w", l.dir, err)
	}
	l.o.Logger.LogAttrs(context.Background(), slog.LevelDebug, "log closed", slog.Uint64("end", uint64(l.durable.next)))
	return nil
}
