package files

import (
	"bufio"
	"bytes"
	"crypto/sha1" // Git's name of a blob, not a protection
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// maxKnownLines is how many of the last lines of a long text are told apart: as many as that may be left out behind a change.
const maxKnownLines = 1 << 19

// isLong reports whether a section of e is written piece by piece.
func isLong(e *Entry) bool { return e != nil && e.Mode.IsRegular() && e.Size > longFile }

// longSection is section where a side is long: each is read a few times, and never held. A text is one hunk, from the first
// line that differs to the last.
func (p *patchWriter) longSection(path string, before, after *Entry) error {
	same := before != nil && after != nil && before.Digest == after.Digest
	var old, now longSide
	if !same {
		seed := maphash.MakeSeed()
		if err := errors.Join(old.read(before, p.store, seed), now.read(after, p.store, seed)); err != nil {
			return err
		}
	}
	p.head(path, before, after)
	if same {
		return nil
	}
	p.index(before, after, old.name(), now.name())
	if old.size()+now.size() == 0 {
		return nil
	}
	if old.binary || now.binary {
		p.w.WriteString("GIT binary patch\n")
		return errors.Join(p.longLiteral(&now), p.longLiteral(&old))
	}
	p.names(path, before, after)
	return p.longHunk(&old, &now)
}

// A longSide is one content of a long section, as the first reading found it.
type longSide struct {
	entry  *Entry // nil for nothing
	store  cas.Store
	binary bool
	git    hash.Hash
	lines  []uint64 // hashes of the last maxKnownLines lines, the nth at n modulo that
	count  int      // of lines
}

func (s *longSide) name() string {
	if s.entry == nil {
		return noBlob
	}
	return hex.EncodeToString(s.git.Sum(nil))
}

// open reads the content; of nothing there is nothing to read.
func (s *longSide) open() (io.ReadCloser, error) {
	if s.entry == nil {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	return s.store.Open(s.entry.Digest)
}

// read reads the content for the first time.
func (s *longSide) read(e *Entry, store cas.Store, seed maphash.Seed) error {
	s.entry, s.store, s.git = e, store, sha1.New()
	if e != nil {
		fmt.Fprintf(s.git, "blob %d\x00", e.Size)
		s.lines = make([]uint64, 0, min(maxKnownLines, e.Size))
	}
	r, err := s.open()
	if err != nil {
		return err
	}
	defer r.Close()
	in := bufio.NewReaderSize(io.TeeReader(r, s.git), pieceSize)
	head, err := in.Peek(binaryHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.binary = isBinary(head)
	return s.readLines(in, seed)
}

// pieceSize is how much of a long content is held, in bytes.
const pieceSize = 64 << 10

// readLines counts the lines, of which the last may lack its newline, and takes their hashes.
func (s *longSide) readLines(in *bufio.Reader, seed maphash.Seed) error {
	var line maphash.Hash
	line.SetSeed(seed)
	begun := false
	for {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && !begun {
			begun = true
			s.count++
			line.Reset()
		}
		line.Write(piece)
		if ends := err == nil || errors.Is(err, io.EOF); ends && begun {
			begun = false
			if s.count > maxKnownLines {
				s.lines[(s.count-1)%maxKnownLines] = line.Sum64()
			} else {
				s.lines = append(s.lines, line.Sum64())
			}
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull): // a long line comes in pieces
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// longLiteral is literal of a long content.
func (p *patchWriter) longLiteral(s *longSide) error {
	r, err := s.open()
	if err != nil {
		return err
	}
	defer r.Close()
	return p.literal(r, s.size())
}

func (s *longSide) size() int64 {
	if s.entry == nil {
		return 0
	}
	return s.entry.Size
}

// longHunk writes the one hunk of two texts that differ.
func (p *patchWriter) longHunk(old, now *longSide) error {
	start, end, err := commonLines(old, now)
	if err != nil {
		return err
	}
	oldEnd, nowEnd := old.count-end, now.count-end
	lead, tail := min(contextLines, start), min(contextLines, end)
	fmt.Fprintf(p.w, "@@ -%s +%s @@\n", hunkRange(start-lead, oldEnd+tail), hunkRange(start-lead, nowEnd+tail))
	a, errOld := old.open()
	b, errNow := now.open()
	defer closeAll(a, b)
	if err := errors.Join(errOld, errNow); err != nil {
		return err
	}
	from, to := bufio.NewReaderSize(a, pieceSize), bufio.NewReaderSize(b, pieceSize)
	for _, part := range []struct {
		in    *bufio.Reader
		lines int
		mark  byte // 0 leaves them out
	}{
		{from, start - lead, 0}, {from, lead, ' '}, {from, oldEnd - start, '-'},
		{to, start, 0}, {to, nowEnd - start, '+'},
		{from, tail, ' '},
	} {
		if err := p.copyLines(part.in, part.lines, part.mark); err != nil {
			return err
		}
	}
	return nil
}

func closeAll(all ...io.Closer) {
	for _, c := range all {
		if c != nil {
			c.Close()
		}
	}
}

// commonLines returns how many lines two texts share at their start and at their end.
func commonLines(a, b *longSide) (start, end int, err error) {
	if start, err = commonStart(a, b); err != nil {
		return 0, 0, err
	}
	most := min(a.count-start, b.count-start, len(a.lines), len(b.lines))
	for end < most && a.lines[(a.count-1-end)%maxKnownLines] == b.lines[(b.count-1-end)%maxKnownLines] {
		end++
	}
	return start, end, nil
}

// commonStart returns how many whole lines two texts share at their start.
func commonStart(a, b *longSide) (lines int, err error) {
	one, errOne := a.open()
	two, errTwo := b.open()
	defer closeAll(one, two)
	if err := errors.Join(errOne, errTwo); err != nil {
		return 0, err
	}
	x, y := make([]byte, pieceSize), make([]byte, pieceSize)
	for {
		n, errX := io.ReadFull(one, x)
		m, errY := io.ReadFull(two, y)
		n = min(n, m)
		for i := range n {
			if x[i] != y[i] {
				return lines, nil
			}
			if x[i] == '\n' {
				lines++
			}
		}
		for _, err := range []error{errX, errY} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return 0, err
			}
		}
		if errX != nil || errY != nil {
			return lines, nil
		}
	}
}

// copyLines writes the next n lines, each behind a mark.
func (p *patchWriter) copyLines(in *bufio.Reader, n int, mark byte) error {
	begins := true
	for n > 0 {
		piece, err := in.ReadSlice('\n')
		if mark != 0 {
			if begins {
				p.w.WriteByte(mark)
			}
			p.w.Write(piece)
		}
		begins = err == nil
		switch {
		case err == nil:
			n--
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF): // the last line, which has no newline
			if mark != 0 {
				p.w.WriteString(noNewline)
			}
			return nil
		default:
			return err
		}
	}
	return nil
}
