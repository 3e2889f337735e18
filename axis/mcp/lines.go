package mcp

import "bytes"

// MaxLine is the longest line, in bytes with its end, that is kept: a longer one passes, and the end of its conversation says that it is not
// on the tape.
const MaxLine = 64 << 20

// keepLine is the largest buffer, in bytes, that waits for the next line.
const keepLine = 1 << 20

// lines cuts what passes into lines, wherever it is cut into reads.
type lines struct {
	part  []byte // of a line that has not ended
	lost  int64  // bytes of a line that is too long; 0 for none
	limit int
}

// A cut is a line that has ended, or one that was too long.
type cut struct {
	line []byte // with its end; valid until the next call
	lost int64  // its length where it is not kept
}

// next takes the beginning of b that belongs to the line that has not ended, and returns what is behind it. ok is false where the line
// does not end in b.
func (l *lines) next(b []byte) (c cut, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		l.add(b)
		return cut{}, nil, false
	}
	head, rest := b[:end+1], b[end+1:]
	if len(l.part) == 0 && l.lost == 0 && len(head) <= l.limit {
		return cut{line: head}, rest, true
	}
	l.add(head)
	return l.end(), rest, true
}

// add takes a part of a line.
func (l *lines) add(b []byte) {
	if l.lost > 0 || len(l.part)+len(b) > l.limit {
		l.lost += int64(len(l.part) + len(b))
		l.part = nil
		return
	}
	l.part = append(l.part, b...)
}

// end returns what came of a line so far; what follows is another.
func (l *lines) end() cut {
	c := cut{l.part, l.lost}
	l.part, l.lost = l.part[:0], 0
	if cap(l.part) > keepLine {
		l.part = nil
	}
	return c
}
