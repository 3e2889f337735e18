package seglog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

func builtBlock(salt *[8]byte, first Pos, prev uint32, records ...string) []byte {
	b := newBlock()
	for _, r := range records {
		b.add([]byte(r), nil)
	}
	b.buf = append(b.buf, trailer)
	putBlockHeader(b.buf, salt, first, len(records), prev)
	return b.buf
}

// FuzzBlock reads bytes as a block, and with its checksums made right, so that what lies behind them is reached. What is read
// is written to the same bytes.
func FuzzBlock(f *testing.F) {
	salt := [8]byte{1, 2, 3}
	f.Add(builtBlock(&salt, 7, 9, "record", "", "another"), true)
	f.Add(builtBlock(&salt, 1, 0, string(make([]byte, 200))), false)
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		if right && len(b) > blockHeader+1 {
			le.PutUint32(b[4:], uint32(len(b)-blockHeader-1))
			le.PutUint32(b[12:], checksum(b[blockHeader:len(b)-1]))
			le.PutUint32(b[28:], headerChecksum(&salt, b))
		}
		if len(b) < blockHeader {
			return
		}
		w := &window{f: bytes.NewReader(b), limit: int64(len(b))}
		want := blockWanted{Pos(le.Uint64(b[16:])), le.Uint32(b[24:])}
		whole, h, err := w.block(0, &salt, want)
		if err != nil {
			return
		}
		again := newBlock()
		yieldBlock(whole, &h, 0, func(r Record, err error) bool {
			if err != nil {
				t.Fatal("checked, and then:", err)
			}
			again.add(r.Data, nil)
			return true
		})
		again.buf = append(again.buf, trailer)
		putBlockHeader(again.buf, &salt, h.first, h.count, h.prev)
		if h.end() > h.first && len(again.done) != h.count {
			t.Fatalf("%d records, the header says %d", len(again.done), h.count)
		}
		if !bytes.Equal(again.buf, whole) {
			t.Fatalf("read\n%x\nwritten\n%x", whole, again.buf)
		}
	})
}

// FuzzOpen opens a directory whose last segment ends in anything, and whose mark is anything.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("garbage"), []byte{}, true)
	f.Add(make([]byte, 2000), []byte{}, false)
	var m [markSize]byte
	mark{1, 64, 1}.encode(&m)
	f.Add(builtBlock(&[8]byte{}, 2, 0, "x"), m[:], true)
	f.Fuzz(func(t *testing.T, end, mark []byte, zeros bool) {
		disk := faultfs.NewMemory()
		l, err := Open("/log", &Options{FS: disk, SegmentSize: 2000})
		if err != nil {
			t.Fatal(err)
		}
		l.AppendWait(t.Context(), []byte("first"))
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, _ := disk.OpenFile("/log/"+segmentName(1), os.O_RDWR, 0)
		info, _ := f.Stat()
		if bytes.HasPrefix(end, blockMagic[:]) && len(end) >= blockHeader { // let it be a block of this segment
			le.PutUint32(end[24:], l.writer.prev)
			le.PutUint32(end[28:], headerChecksum(&l.writer.segment.salt, end))
		}
		f.WriteAt(end, info.Size())
		if zeros {
			f.Truncate(info.Size() + int64(len(end)) + 600)
		}
		if len(mark) > 0 {
			mf, _ := disk.OpenFile("/log/mark", os.O_RDWR|os.O_TRUNC, 0)
			mf.WriteAt(mark, 0)
		}
		l, err = Open("/log", &Options{FS: disk, SegmentSize: 2000})
		if err != nil {
			return // it may say that it is damaged
		}
		n := 0
		for r, err := range l.Records(0) {
			if err != nil || n == 0 && string(r.Data) != "first" {
				t.Fatal(r, err)
			}
			n++
		}
		if n == 0 {
			t.Fatal("what was acknowledged is gone")
		}
		pos, err := l.AppendWait(t.Context(), []byte("more"))
		if err != nil || int(pos) != n+1 {
			t.Fatal(pos, err)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzHeaders reads bytes as a segment's header and as a mark, with the checksums as they are and made right.
func FuzzHeaders(f *testing.F) {
	s := newSegmentInfo(4, 1, 900)
	f.Add(s.encode())
	var m [markSize]byte
	mark{1, 64, 1}.encode(&m)
	f.Add(m[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= segmentHeader {
			le.PutUint32(b[60:], checksum(b[:60]))
			clear(b[40:60])
		}
		if s, err := decodeSegment(b); err == nil && !bytes.Equal(s.encode()[:60], append(bytes.Clone(b[:40]), make([]byte, 20)...)) {
			t.Errorf("%x", b)
		}
		if len(b) == markSize {
			le.PutUint32(b[32:], checksum(b[:32]))
		}
		var again [markSize]byte
		if m, err := decodeMark(b); err == nil {
			if m.encode(&again); !bytes.Equal(again[:], b) {
				t.Errorf("%x", b)
			}
		}
	})
}

// TestWindowReadsAnyPart in any order, whatever it has read before.
func TestWindowReadsAnyPart(t *testing.T) {
	b := make([]byte, 3*windowSize)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	w := &window{f: bytes.NewReader(b), limit: int64(len(b)) - 5}
	for _, part := range [][2]int{{0, 10}, {5, 100}, {windowSize - 5, 10}, {0, 2 * windowSize}, {1, 1}, {3*windowSize - 15, 10}} {
		got, err := w.view(int64(part[0]), part[1])
		if err != nil || !bytes.Equal(got, b[part[0]:][:part[1]]) {
			t.Errorf("%v: %d bytes, %v", part, len(got), err)
		}
	}
	if _, err := w.view(3*windowSize-10, 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("read beyond the limit:", err)
	}
}
