package sessionlog

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// FoldOptions say how much of a log is folded. Nil and zero work.
type FoldOptions struct {
	// At, where it is not nil, stops at the end of that turn: before the first event whose turn is a greater integer. What
	// stands behind it is not folded. An event without a turn, or with one that is no integer, belongs to the turn of the
	// event before it, and what stands before the first turn to turn 0.
	At *int
	// Odd, where it is not nil, is told of each event with a field that the snapshot has and that holds something else than the format
	// says, or stands twice: the first such field of it. Such fields are left out, as if they were absent. Without Odd they end the fold.
	Odd func(*LoadError)
	// Seen, where it is not nil, is told what was folded.
	Seen *FoldSeen
}

// FoldSeen is what was folded of a log.
type FoldSeen struct {
	Events   int  // those that the snapshot says nothing about too
	LastTurn int  // the highest turn of those
	More     bool // At stopped before the end of the log
}

// SnapshotOf folds a log whose entries were not read yet, on several processors where it is of lines. The log is at its end
// then. The error is that of the log, a *LoadError around an *EventError for an event that cannot be read.
func SnapshotOf(log *Reader, o *FoldOptions) (*Snapshot, error) {
	f := &logFold{Fold: NewFold(), log: log, seen: &FoldSeen{}}
	if o != nil {
		f.at = o.At
		if o.Odd != nil {
			f.odd = func(e *EventError) { o.Odd(log.failure(e)) }
		}
		if o.Seen != nil {
			f.seen = o.Seen
		}
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	return &f.snap, nil
}

// A logFold folds the entries of one log.
type logFold struct {
	*Fold
	log  *Reader
	at   *int
	seen *FoldSeen
	size int // of a block, in bytes; 0 for the usual one
}

func (f *logFold) run() error {
	if f.log.in == nil {
		if err := f.log.begin(); err != nil {
			return err
		}
		if _, lines := f.log.in.(*lineSource); lines {
			return f.blocks()
		}
	}
	for e, err := range f.log.Entries() {
		if err != nil {
			return err
		}
		if f.stops(e.Turn, e.HasTurn) {
			f.log.err = io.EOF
			return nil
		}
		f.see(e.Turn, e.event != nil)
		if err := f.AddEntry(e); err != nil {
			return f.log.fail(err)
		}
	}
	return nil
}

// stops reports whether an event of this turn is behind the end of the turn that is asked for.
func (f *logFold) stops(turn int, has bool) bool {
	f.seen.More = f.at != nil && has && turn > *f.at
	return f.seen.More
}

func (f *logFold) see(turn int, event bool) {
	if event {
		f.seen.Events++
		f.seen.LastTurn = max(f.seen.LastTurn, turn)
	}
}

// AddEntry folds the event of an entry, and passes over one without. The error is an *EventError, as that of AddRaw.
func (f *Fold) AddEntry(e *Entry) error { return f.addValid(e.Kind, e.event) }

// addValid is AddRaw for what is known to be an event of this kind; nil for none.
func (f *Fold) addValid(kind Kind, event []byte) error {
	if event == nil || foldSteps[kind] == nil {
		return nil
	}
	if err := f.view.readValid(event); err != nil {
		return err
	}
	return f.add()
}

// A log of lines is folded in blocks of whole lines. Whoever asked for the fold reads the blocks and folds what came of them, in
// order; in between each block is parsed by a goroutine of its own, no more at once than there are processors. All of them
// have ended when the fold returns. What comes of it, errors and their places too, is what one pass over the entries gives.

const (
	blockOfLines = 256 << 10 // bytes, more where a line is longer
	maxIdle      = 100       // reads in a row that give nothing
	blockAlone   = 8 << 20   // from so many bytes on nothing else is held beside a block
)

// A lineBlock is whole lines of a log.
type lineBlock struct {
	data   []byte
	before int   // lines before it
	offset int64 // where it begins, in bytes
	done   chan struct{}

	// What came of it, once done is closed.
	entries []blockEntry
	err     error // behind the entries: io.ErrUnexpectedEOF for a torn end
	line    int   // where that is
	at      int64
}

// A blockEntry is what the fold needs to know of an entry.
type blockEntry struct {
	kind    Kind
	event   []byte // nil where the snapshot says nothing about it
	isEvent bool
	form    Form
	seq     uint64
	hasSeq  bool
	turn    int
	hasTurn bool
	line    int
	offset  int64
}

// blocks folds a log of lines.
func (f *logFold) blocks() error {
	in := &blockReader{r: f.log.from, size: cmp.Or(f.size, blockOfLines)}
	var working sync.WaitGroup
	defer working.Wait()
	var queue []*lineBlock
	for {
		for len(queue) <= runtime.GOMAXPROCS(0) && !in.over() {
			b := in.next()
			if len(b.data) == 0 {
				break
			}
			working.Go(b.parse)
			if queue = append(queue, b); len(b.data) > blockAlone {
				break
			}
		}
		if len(queue) == 0 {
			return f.end(in)
		}
		b := queue[0]
		queue = queue[1:]
		<-b.done
		if done, err := f.fold(b); done || err != nil {
			return err
		}
		in.reuse(b)
	}
}

// end is the end of the reading, behind the last block.
func (f *logFold) end(in *blockReader) error {
	f.log.e.Line, f.log.e.Offset = in.lines+1, in.offset
	if err := f.log.ends(in.err); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// fold folds what came of a block. It is done where nothing behind it counts.
func (f *logFold) fold(b *lineBlock) (done bool, err error) {
	for i := range b.entries {
		e := &b.entries[i]
		f.log.e.Line, f.log.e.Offset = b.before+e.line, e.offset
		f.log.order.see(&Entry{Form: e.form, Seq: e.seq, HasSeq: e.hasSeq, Line: b.before + e.line})
		if f.stops(e.turn, e.hasTurn) {
			f.log.err = io.EOF
			return true, nil
		}
		f.see(e.turn, e.isEvent)
		if err := f.addValid(e.kind, e.event); err != nil {
			return true, f.log.fail(err)
		}
	}
	f.log.e.Line, f.log.e.Offset = b.before+b.line, b.at
	switch {
	case b.err == nil:
		return false, nil
	case errors.Is(b.err, io.ErrUnexpectedEOF):
		if err := f.log.ends(b.err); !errors.Is(err, io.EOF) {
			return true, err
		}
		return true, nil
	}
	return true, f.log.fail(b.err)
}

// parse reads the entries of the block, as lineSource and Reader do one after another.
func (b *lineBlock) parse() {
	defer close(b.done)
	var p entryParser
	for from := 0; from < len(b.data) && b.err == nil; {
		line, ended := b.data[from:], false
		if k := bytes.IndexByte(line, '\n'); k >= 0 {
			line, ended = line[:k+1], true
		}
		b.line++
		b.at = b.offset + int64(from)
		b.err = b.parseLine(&p, line, ended)
		from += len(line)
	}
}

func (b *lineBlock) parseLine(p *entryParser, line []byte, ended bool) error {
	value := bytes.Trim(line, space)
	switch {
	case len(line) > MaxEntry:
		return ErrLineTooLong
	case len(value) == 0:
		return nil
	case !ended && jsonscan.Valid(value) != nil:
		return io.ErrUnexpectedEOF
	}
	e := Entry{raw: value}
	if err := p.parse(&e); err != nil {
		return err
	}
	out := blockEntry{kind: e.Kind, isEvent: e.event != nil, form: e.Form, seq: e.Seq, hasSeq: e.HasSeq, turn: e.Turn, hasTurn: e.HasTurn,
		line: b.line, offset: b.at}
	if foldSteps[e.Kind] != nil {
		out.event = e.event
	}
	b.entries = append(b.entries, out)
	return nil
}

// A blockReader cuts what it reads into blocks of whole lines.
type blockReader struct {
	r      io.Reader
	size   int    // of a block, more where a line is longer
	rest   []byte // the beginning of a line, behind the last block
	lines  int    // given so far
	offset int64  // of rest
	err    error  // what ended the reading
	free   []*lineBlock
}

// reuse takes back a block of which nothing is needed any more.
func (r *blockReader) reuse(b *lineBlock) {
	if cap(b.data) == r.size {
		r.free = append(r.free, b)
	}
}

// block returns an empty block, and room for so many bytes.
func (r *blockReader) block(room int) (*lineBlock, []byte) {
	if n := len(r.free); n > 0 && room <= r.size {
		b := r.free[n-1]
		r.free = r.free[:n-1]
		*b = lineBlock{entries: b.entries[:0], data: b.data[:0]}
		return b, b.data
	}
	return &lineBlock{}, make([]byte, 0, max(r.size, room))
}

func (r *blockReader) over() bool { return r.err != nil && len(r.rest) == 0 }

// next returns the next block. One without data is the end: r.err says of what.
func (r *blockReader) next() *lineBlock {
	b, buf := r.block(2 * len(r.rest))
	buf = append(buf, r.rest...)
	cut, idle := 0, 0 // cut is behind the last newline
	for r.err == nil && (len(buf) < cap(buf) || cut == 0) {
		if len(buf) == cap(buf) {
			if len(buf) > MaxEntry {
				r.err = &jsonscan.LongLineError{Line: r.lines + 1, Offset: r.offset, Limit: MaxEntry}
				break
			}
			buf = append(make([]byte, 0, 2*len(buf)), buf...)
		}
		from := len(buf)
		n, err := r.r.Read(buf[from:cap(buf)])
		buf, r.err = buf[:from+n], err
		if idle++; n > 0 {
			idle = 0
		} else if idle == maxIdle && err == nil {
			r.err = &readError{io.ErrNoProgress}
		}
		if k := bytes.LastIndexByte(buf[from:], '\n'); k >= 0 {
			cut = from + k + 1
		}
	}
	if r.rest = append(r.rest[:0], buf[cut:]...); errors.Is(r.err, io.EOF) {
		cut, r.rest = len(buf), nil // what no newline ends may be an entry all the same
	} else if r.err != nil {
		r.rest = nil
	}
	b.data, b.before, b.offset, b.done = buf[:cut], r.lines, r.offset, make(chan struct{})
	r.lines += bytes.Count(b.data, []byte("\n"))
	r.offset += int64(cut)
	return b
}
