package seglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

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
