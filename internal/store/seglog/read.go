package seglog

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

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
