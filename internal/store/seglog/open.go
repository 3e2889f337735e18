package seglog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Open opens the log in dir, which it makes if need be, and brings its end in order: the package comment says how. The
// caller sees to it that no other process has it open. The error is a *DamageError where acknowledged records are missing
// or changed in the last segment, or a segment is missing or too short; what has changed in earlier ones Records finds.
func Open(dir string, o *Options) (*Log, error) {
	l := &Log{dir: dir, o: o.withDefaults(), epoch: 1, ended: make(chan struct{})}
	l.fs = l.o.FS
	l.arrived.L = &l.mu
	l.filling, l.spare = newBlock(), newBlock()
	l.writer = writer{dir: dir, fs: l.fs, log: l.o.Logger, limit: l.o.SegmentSize, prepares: l.o.Prepare}
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the log in %s: %w", dir, err), l.writer.close())
	}
	l.next = l.writer.next
	l.durable = place{l.writer.next, l.writer.end}
	go l.commit()
	return l, nil
}

func (l *Log) open() error {
	firsts, err := l.list()
	if err != nil {
		return err
	}
	w := &l.writer
	if w.marks, err = openMark(l.fs, l.dir); err != nil {
		return err
	}
	m, unreadable, err := w.marks.read()
	if err != nil {
		return err
	}
	if unreadable != nil {
		l.o.Logger.Warn("the log is opened without its mark", "error", unreadable, "file", w.marks.f.Name())
	}
	if len(firsts) == 0 {
		return l.begin(m)
	}
	size := int64(0)
	for _, first := range firsts {
		if size, err = l.link(first, size); err != nil {
			return err
		}
	}
	if err := l.recoverLast(m, size); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir) // a segment may have got its name just before a crash
}

// list makes the directory if need be, removes what was being made, and returns the first positions of the segments in
// order.
func (l *Log) list() ([]Pos, error) {
	if _, err := l.fs.Stat(l.dir); errors.Is(err, fs.ErrNotExist) {
		if err := l.fs.MkdirAll(l.dir, 0o700); err != nil {
			return nil, err
		}
		if err := l.fs.SyncDir(filepath.Dir(l.dir)); err != nil {
			return nil, err
		}
	}
	entries, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	var firsts []Pos
	for _, e := range entries {
		if e.Name() == nextName || e.Name() == aheadName {
			if err := l.fs.Remove(filepath.Join(l.dir, e.Name())); err != nil {
				return nil, err
			}
		}
		if first := parseSegmentName(e.Name()); first != 0 {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// begin makes the first segment of a new log.
func (l *Log) begin(m mark) error {
	if m.next > 1 {
		return &DamageError{l.dir, 0, fmt.Sprintf("no segment is there, and records before %d were acknowledged", m.next)}
	}
	s, err := l.writer.rotate(1)
	if err != nil {
		return err
	}
	l.segments = []segmentInfo{s}
	l.writer.mark()
	return nil
}

// link reads the header of a segment, ties it to the one before, whose file has sizeBefore bytes, and returns its own size.
func (l *Log) link(first Pos, sizeBefore int64) (int64, error) {
	name := filepath.Join(l.dir, segmentName(first))
	s, size, err := readSegmentHeader(l, name)
	if err != nil {
		return 0, err
	}
	var before Pos
	if n := len(l.segments); n > 0 {
		before = l.segments[n-1].first
	}
	switch {
	case s.first != first:
		return 0, &DamageError{name, 16, fmt.Sprintf("the name says that it begins with record %d, the header says %d", first, s.first)}
	case s.prevFirst != before:
		return 0, &DamageError{name, 24, fmt.Sprintf("it follows %s, which is missing", segmentName(s.prevFirst))}
	case sizeBefore < s.prevSize:
		return 0, &DamageError{filepath.Join(l.dir, segmentName(before)), sizeBefore,
			fmt.Sprintf("the file ends here, its blocks took %d bytes", s.prevSize)}
	}
	l.segments = append(l.segments, s)
	return size, nil
}

// readSegmentHeader returns a segment's header and the size of its file.
func readSegmentHeader(l *Log, name string) (segmentInfo, int64, error) {
	f, err := l.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return segmentInfo{}, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return segmentInfo{}, 0, err
	}
	b := make([]byte, segmentHeader)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return segmentInfo{}, 0, err
	}
	s, err := decodeSegment(b[:n])
	if err != nil {
		err = &DamageError{name, 0, err.Error()}
	}
	return s, info.Size(), err
}

// recoverLast finds the end of the last segment, brings what is there to the disk for certain, and cuts off a torn block.
func (l *Log) recoverLast(m mark, size int64) error {
	w, last := &l.writer, &l.segments[len(l.segments)-1]
	name := filepath.Join(l.dir, segmentName(last.first))
	f, err := l.fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	w.f, w.segment = f, *last
	t := tail{window: window{f: f, limit: size}, name: name, segment: last}
	if err := t.find(); err != nil {
		return err
	}
	torn, err := t.judge(m)
	if err != nil {
		return err
	}
	if torn != nil {
		l.o.Logger.Warn("a block that was being written when the log was last used is cut off; nothing in it was acknowledged",
			"file", name, "offset", t.at, "bytes", t.extent-t.at, "reason", torn)
		if err := f.Truncate(t.at); err != nil {
			return err
		}
		size = t.at
	}
	from := int64(0)
	if m.segment == last.first {
		from = min(m.at, t.at)
	}
	if err := writeAgain(&t.window, from, t.at); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	w.end, w.ahead, w.next, w.prev = t.at, size, t.want.first, t.want.prev
	w.began = w.end
	w.mark()
	return nil
}

// writeAgain writes what it reads, so that a sync means it: after a failed one the kernel takes for written what is not.
func writeAgain(w *window, from, to int64) error {
	for from < to {
		b, err := w.view(from, int(min(windowSize, to-from)))
		if err != nil {
			return err
		}
		if _, err := w.f.(io.WriterAt).WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}

// Records are the acknowledged records from a position on (0 and 1: all), up to the End at the time when the loop begins.
// Appends go on meanwhile. An error (a *DamageError, one of reading) ends the loop.
func (l *Log) Records(from Pos) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range l.ranges(max(from, 1)) {
			if !r.records(max(from, 1), yield) {
				return
			}
		}
	}
}

// A span is the part of a segment that Records reads.
type span struct {
	log *Log
	segmentInfo
	size int64 // up to there blocks are whole
	end  Pos   // behind the last record
}

// ranges are the segments that hold records from a position on.
func (l *Log) ranges(from Pos) []span {
	l.mu.Lock()
	defer l.mu.Unlock()
	var spans []span
	end, size := l.durable.next, l.durable.at
	for _, s := range slices.Backward(l.segments) {
		if from >= end {
			break
		}
		spans = append(spans, span{l, s, size, end})
		end = s.first
		size = s.prevSize
	}
	slices.Reverse(spans)
	return spans
}

// records yields the records of one segment and says whether to go on.
func (s *span) records(from Pos, yield func(Record, error) bool) bool {
	name := filepath.Join(s.log.dir, segmentName(s.first))
	f, err := s.log.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		yield(Record{}, err)
		return false
	}
	defer f.Close()
	w := window{f: f, limit: s.size}
	at, want := int64(segmentHeader), blockWanted{s.first, s.crc}
	for at < s.size {
		b, h, err := s.block(&w, at, want, from)
		if err != nil {
			yield(Record{}, s.damaged(err, name, at))
			return false
		}
		if b != nil && !yieldBlock(b, &h, from, yield) {
			return false
		}
		at += h.size()
		want = blockWanted{h.end(), h.self}
	}
	if want.first != s.end {
		err := errors.New("the last block does not end with the segment's last record")
		yield(Record{}, s.damaged(&errNoBlock{err}, name, at))
		return false
	}
	return true
}

// block reads the block at a place; of one that ends before from, the header alone.
func (s *span) block(w *window, at int64, want blockWanted, from Pos) ([]byte, blockInfo, error) {
	if want.first < from {
		h, err := w.header(at, &s.salt, want)
		if err != nil || h.end() <= from {
			return nil, h, err
		}
	}
	return w.block(at, &s.salt, want)
}

func (s *span) damaged(err error, name string, at int64) error {
	var none *errNoBlock
	if errors.As(err, &none) {
		return &DamageError{name, at, none.reason.Error()}
	}
	return err
}

// yieldBlock yields the records of a block from a position on.
func yieldBlock(b []byte, h *blockInfo, from Pos, yield func(Record, error) bool) bool {
	body := b[blockHeader : len(b)-1]
	for pos := h.first; pos < h.end(); pos++ {
		record, rest, err := cutRecord(body)
		if err != nil { // checkBlock has seen to it
			yield(Record{}, err)
			return false
		}
		if pos >= from && !yield(Record{pos, record}, nil) {
			return false
		}
		body = rest
	}
	return true
}
