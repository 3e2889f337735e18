package foreign

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Options are what a file does not say of itself. Nil and zero work.
type Options struct {
	// The parts of a typescript, where the file that is opened is another of them. LogIO is a log of output and input both.
	Timing, LogOut, LogIn, LogIO string
}

// An opener opens a file once more, from its beginning, unpacked.
type opener func() (io.ReadCloser, error)

// sniffed is how much of a file is looked at to tell its format.
const sniffed = 64 << 10

// Open opens the recording at path, whatever its format is. The error wraps ErrFormat where it is of none that is known.
func Open(path string, o *Options) (Source, error) {
	if o == nil {
		o = &Options{}
	}
	b, open, err := peek(path)
	if err != nil {
		return nil, err
	}
	switch tell(b) {
	case AsciicastV1:
		return newCastV1(path, open)
	case AsciicastV2:
		return opened(path, open, newCast)
	case Ttyrec:
		return opened(path, open, newTtyrec)
	case Typescript:
		files, err := findTypescript(path, isTiming(b), o)
		if err != nil {
			return nil, err
		}
		return newTypescript(files)
	}
	if o.Timing != "" { // a log whose first line is gone
		files, err := findTypescript(path, false, o)
		if err != nil {
			return nil, err
		}
		return newTypescript(files)
	}
	return nil, fmt.Errorf("%s is %w", path, ErrFormat)
}

func opened[S Source](path string, open opener, read func(string, io.ReadCloser) (S, error)) (Source, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	s, err := read(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// tell says which format the file has that begins with b; asciicast v3 is told as v2, whose reader knows both.
func tell(b []byte) Format {
	switch trimmed := bytes.TrimLeft(b, " \t\r\n"); {
	case len(trimmed) > 0 && trimmed[0] == '{':
		return tellCast(b)
	case bytes.HasPrefix(b, []byte(started)), isTiming(b):
		return Typescript
	case isTtyrec(b):
		return Ttyrec
	}
	return ""
}

// tellCast tells the versions of asciicast apart: 2 and 3 have their whole header in the first line.
func tellCast(b []byte) Format {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	var h struct {
		Version json.Number
		Stdout  json.RawMessage
	}
	if json.Unmarshal(line, &h) != nil || h.Version == "1" || h.Stdout != nil {
		return AsciicastV1
	}
	return AsciicastV2
}

// isTtyrec reports whether the first records of b, as far as they are there, can be those of a ttyrec.
func isTtyrec(b []byte) bool {
	if len(b) < ttyrecHead {
		return false
	}
	var last uint32
	for n := 0; len(b) >= ttyrecHead && n < 16; n++ {
		if _, _, err := parseTtyrec([ttyrecHead]byte(b)); err != nil {
			return n > 1 // its reader says where it is wrong
		}
		sec := binary.LittleEndian.Uint32(b)
		if n > 0 && (sec > last+uint32(MaxDelay.Seconds()) || last > sec+uint32(MaxDelay.Seconds())) {
			return n > 1
		}
		last = sec
		length := int(binary.LittleEndian.Uint32(b[8:]))
		if length == 0 && n == 0 && sec == 0 {
			return false // zeros
		}
		b = b[min(len(b), ttyrecHead+length):]
	}
	return true
}

// peek returns the beginning of the file and how to open it.
func peek(path string) ([]byte, opener, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no file: want a recording of asciinema, ttyrec or script", path)
	}
	open := func() (io.ReadCloser, error) {
		u, err := unpack(path)
		if err != nil {
			return nil, err
		}
		return &unpacked{withoutMark(u), u.f}, nil
	}
	f, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b := make([]byte, sniffed)
	n, err := io.ReadFull(f, b)
	if err != nil && !unexpectedEnd(err) {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return b[:n], open, nil
}

// unpacked is a file that is read through a decompressor.
type unpacked struct {
	io.Reader
	f *os.File
}

func (u *unpacked) Close() error { return u.f.Close() }

// withoutMark reads r without a byte order mark, where one stands before the object with which an asciicast begins.
func withoutMark(r io.Reader) io.Reader {
	const mark = "\ufeff"
	b := bufio.NewReader(r)
	if head, _ := b.Peek(len(mark) + 1); string(head) == mark+"{" {
		_, _ = b.Discard(len(mark))
	}
	return b
}

// unpack opens the file; what gzip or bzip2 packed is unpacked as it is read.
func unpack(path string) (*unpacked, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	head, _ := r.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return &unpacked{z, f}, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return &unpacked{bzip2.NewReader(r), f}, nil
	}
	return &unpacked{r, f}, nil
}
