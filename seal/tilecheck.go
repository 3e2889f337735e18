package seal

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
)

// A tileChecker holds the sections of one stream, as they are computed, against what lies in seal.tiles.
type tileChecker struct {
	inv      *inventory
	stream   string
	open     map[string]*checked
	problems []Problem
	buf      []byte
}

type checked struct {
	f  *os.File
	r  *bufio.Reader
	at int64 // bytes compared
	ok bool  // so far
}

// check compares the next bytes of a section.
func (c *tileChecker) check(name string, b []byte) error {
	s := c.section(name)
	if !s.ok {
		return nil
	}
	c.buf = append(c.buf[:0], b...) // as large as it must be
	n, err := io.ReadFull(s.r, c.buf)
	if i := firstDifference(c.buf[:n], b); i < len(b) {
		s.ok = false
		what := "differs from what the recording gives"
		if i == n && err != nil {
			what = "ends too early: " + err.Error()
		}
		c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: it %s", s.at+int64(i), what))
	}
	s.at += int64(len(b))
	return nil
}

func (c *tileChecker) section(name string) *checked {
	if s := c.open[name]; s != nil {
		return s
	}
	if c.open == nil {
		c.open = map[string]*checked{}
	}
	s := &checked{}
	c.open[name] = s
	rel := tilesPath(c.stream, name)
	f, err := c.inv.open(rel)
	var p *Problem
	switch {
	case err == nil:
		s.f, s.r, s.ok = f, bufio.NewReaderSize(f, tileBytes), true
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &p): // tileNames and the inventory tell
	default:
		c.problems = append(c.problems, *problem(CodeTiles, rel, "it cannot be read: %v", err))
	}
	return s
}

// finish looks for what stands behind the end.
func (c *tileChecker) finish(stream *Stream) {
	for _, name := range stream.sections() {
		s := c.open[name]
		if s == nil || !s.ok {
			continue
		}
		if rest, err := s.r.Peek(1); err == nil && len(rest) > 0 {
			c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: something stands behind its end", s.at))
		}
	}
}

func (c *tileChecker) close() {
	for _, s := range c.open {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// readAtMost reads what r gives, up to limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
