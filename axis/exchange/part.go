package exchange

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A spool takes the bytes of an answer until its exchange ends.
type spool interface {
	io.Writer
	// answer reads what was written.
	answer() io.Reader
	// close frees what the process holds; a part stays.
	close() error
	// remove frees everything.
	remove() error
}

// memory is the spool of a run that keeps no parts.
type memory struct{ bytes.Buffer }

func (m *memory) answer() io.Reader { return bytes.NewReader(m.Bytes()) }
func (m *memory) close() error      { return m.remove() }
func (m *memory) remove() error     { m.Buffer = bytes.Buffer{}; return nil }

// part is the spool that a killed recorder leaves behind:
//
//	part = record newline *byte
//
// The record is the line that the tape would hold if the recorder ended now, without the response; the bytes are the
// answer's, scrubbed, as far as the scrubber has released them. A part is named by its arrival, in decimal, and is removed
// once the record of its exchange is on the tape.
type part struct {
	f    *os.File
	path string
	head int64 // length of the line
	size int64 // bytes of the answer
}

// createPart begins the part of the exchange that rec holds, for its owner alone. A file that is there already is left of
// an earlier recorder and an error.
func createPart(dir string, arrival uint64, rec *tape.Record) (*part, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.FormatUint(arrival, 10))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	line := append(tape.AppendRecord(nil, rec), '\n')
	p := &part{f: f, path: path, head: int64(len(line))}
	if _, err := f.Write(line); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// Write appends bytes of the answer. They are with the kernel when it returns.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.size += int64(n)
	return n, err
}

func (p *part) answer() io.Reader { return io.NewSectionReader(p.f, p.head, p.size) }
func (p *part) close() error      { return p.f.Close() }
func (p *part) remove() error     { return errors.Join(p.f.Close(), os.Remove(p.path)) }
