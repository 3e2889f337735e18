package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A jsonFile reads one long JSON object, of which no more than one value is in memory.
type jsonFile struct {
	r    io.Reader
	b    []byte
	i    int   // in b, the next byte
	base int64 // of b in the file
	eof  bool
}

// jsonRead is how many bytes are read at once.
const jsonRead = 256 << 10

var (
	errCut     = errors.New("the file ends in the middle: it was cut")
	errTooLong = fmt.Errorf("a value has more than %d bytes, the limit", MaxItem)
)

// offset is where the next byte stands in the file.
func (f *jsonFile) offset() int64 { return f.base + int64(f.i) }

// fill reads more behind what is there. The error is io.EOF at the end.
func (f *jsonFile) fill() error {
	if f.eof {
		return io.EOF
	}
	if len(f.b)-f.i > MaxItem {
		return errTooLong
	}
	if f.i > 0 && f.i >= len(f.b)/2 {
		f.base += int64(f.i)
		f.b, f.i = f.b[:copy(f.b, f.b[f.i:])], 0
	}
	f.b = slices.Grow(f.b, jsonRead)
	n, err := f.r.Read(f.b[len(f.b):cap(f.b)])
	f.b = f.b[:len(f.b)+n]
	if errors.Is(err, io.EOF) {
		f.eof = true
		if n > 0 {
			return nil
		}
	}
	return err
}

// peek steps over white space and returns the next byte. The error is errCut at the end.
func (f *jsonFile) peek() (byte, error) {
	for {
		for ; f.i < len(f.b); f.i++ {
			switch c := f.b[f.i]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if err := f.fill(); errors.Is(err, io.EOF) {
			return 0, errCut
		} else if err != nil {
			return 0, err
		}
	}
}

// take steps over one byte, which must be want.
func (f *jsonFile) take(want byte) error {
	c, err := f.peek()
	if err != nil {
		return err
	}
	if c != want {
		return fmt.Errorf("want %q, not %q", want, c)
	}
	f.i++
	return nil
}

// more reports whether another member comes, and steps over the comma before it, or over the end.
func (f *jsonFile) more(first bool, end byte) (bool, error) {
	c, err := f.peek()
	switch {
	case err != nil:
		return false, err
	case c == end:
		f.i++
		return false, nil
	case first:
		return true, nil
	}
	return true, f.take(',')
}

// value returns the next value as it stands, valid until the next read. It is as long as its brackets say; what is in it nobody
// has looked at.
func (f *jsonFile) value() ([]byte, error) {
	c, err := f.peek()
	if err != nil {
		return nil, err
	}
	var depth, at int // at is behind f.i, for fill moves what is there
	text := false
	for {
		b := f.b[f.i:]
		for at < len(b) {
			if text {
				n := bytes.IndexByte(b[at:], '"')
				if n < 0 {
					at = len(b)
					break
				}
				at += n + 1
				text = escaped(b[:at-1])
				if !text && depth == 0 {
					return f.until(at), nil
				}
				continue
			}
			switch b[at] {
			case '"':
				text = true
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth < 0 {
					return f.until(at), nil
				}
				if depth == 0 {
					return f.until(at + 1), nil
				}
			case ',', ' ', '\t', '\r', '\n':
				if depth == 0 {
					return f.until(at), nil
				}
			}
			at++
		}
		if err := f.fill(); errors.Is(err, io.EOF) {
			if depth == 0 && !text && c != '"' && at > 0 {
				return f.until(at), nil
			}
			return nil, errCut
		} else if err != nil {
			return nil, err
		}
	}
}

// escaped reports whether what follows b, which is in a string, stands behind an odd number of backslashes.
func escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func (f *jsonFile) until(at int) []byte {
	v := f.b[f.i : f.i+at]
	f.i += at
	return v
}

// key reads a key and the colon behind it.
func (f *jsonFile) key() (string, error) {
	raw, err := f.value()
	if err != nil {
		return "", err
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	key := s.Text()
	if err := s.End(); err != nil {
		return "", fmt.Errorf("want a key: %w", err)
	}
	return key, f.take(':')
}

// object reads an object, member by member: member is to read the value.
func (f *jsonFile) object(member func(key string) error) error {
	if err := f.take('{'); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for {
		more, err := f.more(len(seen) == 0, '}')
		if err != nil || !more {
			return err
		}
		key, err := f.key()
		if err != nil {
			return err
		}
		if seen[key] || len(seen) > maxMembers {
			return fmt.Errorf("the key %.40q stands twice, or there are more than %d", key, maxMembers)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
}

// maxMembers bounds the members of the objects around the items.
const maxMembers = 1000

// list reads a list, value by value.
func (f *jsonFile) list(item func(raw []byte, at int64) error) error {
	if err := f.take('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := f.more(first, ']')
		if err != nil || !more {
			return err
		}
		if _, err := f.peek(); err != nil {
			return err
		}
		at := f.offset()
		raw, err := f.value()
		if err != nil {
			return err
		}
		if err := item(raw, at); err != nil {
			return err
		}
	}
}

// end fails where something other than white space follows.
func (f *jsonFile) end() error {
	switch c, err := f.peek(); {
	case errors.Is(err, errCut):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%q follows the end", c)
	}
}

// bom steps over a byte order mark, as some programs of Windows write it.
func (f *jsonFile) bom() error {
	if _, err := f.peek(); err != nil {
		return err
	}
	for len(f.b)-f.i < 3 {
		if err := f.fill(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if bytes.HasPrefix(f.b[f.i:], []byte("\ufeff")) {
		f.i += 3
	}
	return nil
}
