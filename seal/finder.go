package seal

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A finder finds a line of a file, by the places of every 256th that seal.tiles holds where there are such, else from the
// beginning. What it finds is believed by nobody: the paths of the proof show whether it is the leaf.
type finder struct {
	f       *os.File
	stream  *Stream
	offsets *os.File // nil where there is none
	json    jsonscan.Scanner
}

// begin returns where the leaf at 256·n begins, -1 where that is not known.
func (l *finder) begin(n int64) int64 {
	var b [8]byte
	if n == 0 {
		return 0
	}
	if l.offsets == nil {
		return -1
	}
	if _, err := l.offsets.ReadAt(b[:], 8*n); err != nil {
		return -1
	}
	at := int64(binary.BigEndian.Uint64(b[:]))
	if at < 0 || at > l.stream.Bytes {
		return -1
	}
	return at
}

// leaf returns the line at a place.
func (l *finder) leaf(ctx context.Context, at int64) ([]byte, error) {
	from := at / tileWidth
	begin := l.begin(from)
	if begin < 0 {
		from, begin = 0, 0
	}
	n := from * tileWidth
	var out []byte
	err := eachLine(ctx, io.NewSectionReader(l.f, begin, 1<<62), func(line []byte) (bool, error) {
		if n == at {
			out = append([]byte{}, line...)
			return false, nil
		}
		n++
		return true, nil
	})
	if err == nil && out == nil {
		err = problem(CodeCut, l.stream.Path, "it has %d lines, expected %d", n, l.stream.Leaves)
	}
	return out, err
}

// seq returns the first line with a seq. Where seq ascends it is found by halving; else all lines are read.
func (l *finder) seq(ctx context.Context, seq uint64) (at int64, line []byte, err error) {
	blocks := (l.stream.Leaves + tileWidth - 1) / tileWidth
	n := int64(sort.Search(int(blocks), func(i int) bool {
		first, ok := l.firstSeq(ctx, int64(i))
		return ok && first > seq
	}))
	if n > 0 {
		n--
	}
	if at, line, err = l.scan(ctx, n, tileWidth, seq); err != nil || line != nil {
		return at, line, err
	}
	if at, line, err = l.scan(ctx, 0, l.stream.Leaves, seq); err == nil && line == nil {
		err = fmt.Errorf("seq %d of %s: %w", seq, l.stream.Path, ErrNoLeaf)
	}
	return at, line, err
}

// firstSeq is the first seq in the 256 lines from 256·n.
func (l *finder) firstSeq(ctx context.Context, n int64) (seq uint64, ok bool) {
	begin := l.begin(n)
	if begin < 0 {
		return 0, false
	}
	count := 0
	_ = eachLine(ctx, io.NewSectionReader(l.f, begin, 1<<62), func(line []byte) (bool, error) {
		count++
		seq, ok = seqOf(&l.json, line)
		return !ok && count < tileWidth, nil
	}) // an error is met again where the lines are read
	return seq, ok
}

// scan looks through count lines from 256·block.
func (l *finder) scan(ctx context.Context, block, count int64, seq uint64) (at int64, line []byte, err error) {
	begin := l.begin(block)
	if begin < 0 {
		return 0, nil, nil
	}
	n, end := block*tileWidth, block*tileWidth+count
	err = eachLine(ctx, io.NewSectionReader(l.f, begin, 1<<62), func(b []byte) (bool, error) {
		if got, ok := seqOf(&l.json, b); ok && got == seq {
			at, line = n, append([]byte{}, b...)
			return false, nil
		}
		n++
		return n < end, nil
	})
	return at, line, err
}

// eachLine gives the lines of r, each with its end, until more is false. A line over MaxLeaf is an error.
func eachLine(ctx context.Context, r io.Reader, line func(b []byte) (more bool, err error)) error {
	br := bufio.NewReaderSize(r, 16<<10)
	var buf []byte
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			buf = append(buf[:0], b...)
			for errors.Is(err, bufio.ErrBufferFull) && len(buf) <= MaxLeaf {
				b, err = br.ReadSlice('\n')
				buf = append(buf, b...)
			}
			b = buf
		}
		if len(b) > MaxLeaf {
			return fmt.Errorf("a line is longer than %d bytes, which is the most that is proved", MaxLeaf)
		}
		if len(b) > 0 {
			if more, err := line(b); err != nil || !more {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
