package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// An entry is one record of the log:
//
//	kind, a byte: S started, T turns, E ended, V verdict
//	agent, run    each its length (uvarint) and its bytes
//	but for V: offset (uvarint) in the run's file at which the lines stand; CRC-32C (four bytes, little endian) of what stands
//	before them; turns before them (uvarint); turns among them (uvarint)
//	the lines, each with its newline; of V the verdict
//
// Offset and CRC make each entry say where it belongs: a file is checked up to any entry, and an entry that was taken in already
// is known by its offset.
type entry struct {
	kind   byte
	id     runtrace.ID
	offset int64
	crc    uint32
	turns  int // before
	added  int
	data   []byte
}

const (
	kindStarted = 'S'
	kindTurns   = 'T'
	kindEnded   = 'E'
	kindVerdict = 'V'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendHead appends all but the data.
func (e *entry) appendHead(dst []byte) []byte {
	dst = append(dst, e.kind)
	for _, s := range []string{e.id.Agent, e.id.Run} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	if e.kind == kindVerdict {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(e.offset))
	dst = binary.LittleEndian.AppendUint32(dst, e.crc)
	dst = binary.AppendUvarint(dst, uint64(e.turns))
	return binary.AppendUvarint(dst, uint64(e.added))
}

var errEntry = errors.New("not an entry of this version")

// parseEntry reads an entry, whose data shares b's memory.
func parseEntry(b []byte) (entry, error) {
	r := entryReader{b: b}
	e := entry{kind: r.byte()}
	e.id.Agent, e.id.Run = r.text(), r.text()
	switch e.kind {
	case kindStarted, kindTurns, kindEnded:
		e.offset = int64(r.number())
		e.crc = r.uint32()
		e.turns, e.added = int(r.number()), int(r.number())
	case kindVerdict:
	default:
		return e, fmt.Errorf("%w: kind %q", errEntry, e.kind)
	}
	if r.bad || e.offset < 0 || e.turns < 0 || e.added < 0 {
		return e, fmt.Errorf("%w: it ends too early or holds a number that is too large", errEntry)
	}
	e.data = r.b
	if e.id == (runtrace.ID{}) && e.kind == kindVerdict {
		return e, nil
	}
	return e, e.id.Check() // it becomes a path
}

// An entryReader takes an entry apart; what is missing is zero and bad.
type entryReader struct {
	b   []byte
	bad bool
}

func (r *entryReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *entryReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *entryReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *entryReader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<62 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *entryReader) text() string { return string(r.take(r.number())) }
