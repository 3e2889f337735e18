package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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

func (u unnamed) close() error { return u.remove() }

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

func (p *part) close() error { return p.f.Close() }

func (p *part) remove() error { return errors.Join(p.f.Close(), os.Remove(p.path)) }

// RecorderEnded is the Error of an exchange that was read from a part.
const RecorderEnded = "recorder ended"

// maxPartLine bounds a line of a part, in bytes: it holds headers and at most tape.InlineLimit bytes of a body.
const maxPartLine = 4 << 20

// A Part is one answer that was still streaming when its recorder ended, or that streams still.
type Part struct {
	// Kind is the exchange as a record would hold it: *tape.LLMCall or *tape.HTTPExchange, its Error RecorderEnded. Its
	// Response has the digest of the bytes that are there, and the text where it is short; no store holds longer ones.
	Kind tape.Kind
	*tape.Exchange
	Path string // of the part
	Head int64  // length in bytes of its first line: the answer begins there
	Len  int64  // bytes of the answer that are there
}

// Open streams the bytes of the answer that are there.
func (p *Part) Open() (io.ReadCloser, error) {
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(p.Head, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Parts reads the parts of a directory in order of arrival, those of a recorder that still runs too. A directory that does
// not exist has none. A part whose first line is not whole is skipped: nothing of its answer had been passed on.
func Parts(dir string) ([]*Part, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var parts []*Part
	for _, e := range entries {
		if !IsPart(e) {
			continue
		}
		p, err := readPart(filepath.Join(dir, e.Name()), true)
		if errors.Is(err, os.ErrNotExist) { // its exchange ended meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return parts, nil
}

// IsPart reports whether an entry of a directory of parts is one: a regular file, named by its arrival in decimal.
func IsPart(e fs.DirEntry) bool {
	_, err := strconv.ParseUint(e.Name(), 10, 64)
	return err == nil && e.Type().IsRegular()
}

// ReadPartHead reads the first line of the part at path, of 4 MiB at most; nil where it is not whole yet. The answer is not
// read: there is no Response, and Len is 0. What is read does not change while the answer streams. Errors: fs.ErrNotExist where its
// exchange has ended; the file system's; one for a line that holds no exchange.
func ReadPartHead(path string) (*Part, error) { return readPart(path, false) }

// readPart reads one part, with its answer or without; nil where its first line is torn.
func readPart(path string, answer bool) (*Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := jsonscan.NewLines(f, maxPartLine)
	line, err := lines.Next()
	switch {
	case errors.Is(err, io.EOF) || err == nil && lines.Torn():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("part %s: %w", path, err)
	}
	rec, err := tape.ParseRecord(line[:len(line)-1])
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", path, err)
	}
	p := &Part{Kind: rec.Kind, Exchange: tape.ExchangeOf(rec.Kind), Path: path, Head: int64(len(line))}
	if p.Exchange == nil {
		return nil, fmt.Errorf("part %s holds a %s", path, rec.Kind.Name())
	}
	if !answer {
		return p, nil
	}
	if _, err := f.Seek(p.Head, io.SeekStart); err != nil {
		return nil, err
	}
	if p.Response, err = payloadOf(f); err != nil {
		return nil, err
	}
	p.Len = p.Response.Len
	return p, nil
}

// payloadOf returns the payload that everything that r gives would be, in bounded memory.
func payloadOf(r io.Reader) (*tape.Payload, error) {
	head, err := io.ReadAll(io.LimitReader(r, tape.InlineLimit+1))
	if err != nil {
		return nil, err
	}
	h := cas.NewHasher()
	h.Write(head)
	n, err := io.Copy(h, r)
	if err != nil {
		return nil, err
	}
	p := &tape.Payload{Hash: h.Sum(), Len: int64(len(head)) + n}
	if p.Len <= tape.InlineLimit && utf8.Valid(head) {
		p.Inline, p.Text = true, string(head)
	}
	return p, nil
}
