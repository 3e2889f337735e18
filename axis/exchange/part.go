package exchange

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An answerSpool takes the bytes of an answer until its exchange ends.
type answerSpool interface {
	io.Writer
	// payload ends the answer and puts it into the recorder's store.
	payload(rec *tape.Recorder) (*tape.Payload, error)
	// close frees what the process holds; a part stays.
	close() error
	// remove frees everything.
	remove() error
}

// errDropped ends an answer that is not kept.
var errDropped = errors.New("the answer is not kept")

// unnamed is the spool of a run that keeps no parts: a short answer waits in memory, a long one goes to the store as it
// comes.
type unnamed struct{ *spool.Spool }

func (u unnamed) payload(*tape.Recorder) (*tape.Payload, error) { return u.Finish(nil) }
func (u unnamed) close() error                                  { return u.remove() }

// remove ends an answer that payload has not ended; its error would say no more than that.
func (u unnamed) remove() error { _, _ = u.Finish(errDropped); return nil }

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

func (p *part) payload(rec *tape.Recorder) (*tape.Payload, error) {
	return payloadFrom(rec, io.NewSectionReader(p.f, p.head, p.size))
}

func (p *part) close() error  { return p.f.Close() }
func (p *part) remove() error { return errors.Join(p.f.Close(), os.Remove(p.path)) }
