package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxFindings is how many findings Verify keeps.
const MaxFindings = 1000

// A Finding is one thing that is not as it must be.
type Finding struct {
	Code string `json:"code"` // as Code gives it
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"` // for people, File and Line included
}

// A Verification is what Verify found.
type Verification struct {
	ID       string    `json:"id"`
	Events   int       `json:"events"`
	Chunks   int       `json:"chunks"`
	Frames   int       `json:"frames"`
	Bytes    int64     `json:"bytes"` // of output
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // findings beyond MaxFindings
}

// Verify reads everything in dir and lists all that Open would refuse, not the first alone. The error says that it could not
// look.
func Verify(dir string) (*Verification, error) {
	r := &Reader{dir: dir, state: StateFinished}
	v := &verifier{r: r, out: &Verification{Findings: []Finding{}}}
	if err := v.whole(); err != nil {
		return nil, err
	}
	defer r.Close()
	return v.out, v.streams()
}

type verifier struct {
	r   *Reader
	out *Verification
}

// note keeps a refusal; another error comes back.
func (v *verifier) note(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if err := v.note(one); err != nil {
				return err
			}
		}
		return nil
	}
	if Code(err) == "" {
		return err
	}
	if len(v.out.Findings) >= MaxFindings {
		v.out.More++
		return nil
	}
	f := Finding{Code: Code(err), Text: err.Error()}
	var at *FileError
	if errors.As(err, &at) {
		f.File, f.Line = at.File, at.Line
	}
	v.out.Findings = append(v.out.Findings, f)
	return nil
}

// whole looks at the files that are no streams, and opens the output.
func (v *verifier) whole() error {
	if st, err := os.Stat(v.r.dir); err != nil {
		return err
	} else if !st.IsDir() {
		return refuse(filepath.Base(v.r.dir), 0, ErrNotDirectory, "a cassette is one")
	}
	if err := v.note(v.r.readManifest()); err != nil {
		return err
	}
	v.out.ID = v.r.manifest.ID
	v.r.o.Partial = true // all that is missing, not the first alone
	if err := errors.Join(v.r.readWhole(), v.r.openRaw()); err != nil {
		return err
	}
	return v.note(v.r.why)
}

// streams reads the five streams in the order of seq, and the output along with them.
func (v *verifier) streams() error {
	for _, s := range lineStreams {
		if _, err := os.Stat(filepath.Join(v.r.dir, s.File())); errors.Is(err, fs.ErrNotExist) {
			if err := v.note(refuse(s.File(), 0, ErrMissingFile, "")); err != nil {
				return err
			}
		}
	}
	v.out.Bytes = v.r.size
	return v.r.prove(lineStreams, v.note, func(e *Event, _ int64) {
		v.out.Events++
		switch e.Stream {
		case StreamOutput:
			v.out.Chunks++
		case StreamFrames:
			v.out.Frames++
		}
	})
}

// prove reads streams in the order of seq, and the output along with its index. note, where it is not nil, is told of all that is
// refused; else the first refusal is the error. each is given every event, and how much of the output was read.
func (r *Reader) prove(streams []Stream, note func(error) error, each func(e *Event, at int64)) error {
	final := r.final
	if len(streams) < len(lineStreams) {
		final = nil
	}
	m, err := newMerger(r.dir, streams, final, 0, r.o.Partial)
	if err != nil {
		return err
	}
	defer m.close()
	m.note = note
	p := r.prover()
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := m.pass(p.event(r, e, m)); err != nil {
			return err
		}
		each(e, p.at)
	}
	if err := m.pass(p.covered()); err != nil {
		return err
	}
	if final != nil && m.file != nil && m.file.stream != StreamFinal {
		if err := m.pass(refuse(m.file.stream.File(), m.file.line, ErrSequence, "nothing may come behind the final record")); err != nil {
			return err
		}
	}
	switch {
	case note == nil && r.state == StateUnfinished, note != nil && (r.raw == nil || r.manifest.ContentDigest.SHA256 == ""):
		return nil
	case note != nil: // chunks may have been left out
		p.whole.Reset()
		if _, err := io.Copy(p.whole, r.OutputReader()); err != nil {
			return err
		}
	}
	return m.pass(checkWhole(&r.manifest, p.whole.Sum(nil)))
}

// event refuses an event that is not as the output is. Behind a chunk whose range is wrong it goes on, so that the next ones are looked at.
func (p *prover) event(r *Reader, e *Event, m *merger) error {
	switch {
	case e.Chunk != nil:
		err := p.chunk(e.Chunk, m.file.line)
		end := e.Chunk.Offset + e.Chunk.Length
		if (errors.Is(err, ErrChunkRange) || errors.Is(err, ErrTooLong)) && r.raw != nil && e.Chunk.Offset >= 0 && e.Chunk.Length >= 0 && end >= 0 && end <= p.size {
			p.at = end
			p.in = io.NewSectionReader(r.raw, end, p.size-end)
		}
		return err
	case e.Frame != nil && m.note != nil && (e.Frame.RawEnd < 0 || e.Frame.RawEnd > p.size):
		return refuse(FramesFile, m.file.line, ErrChunkRange, "raw_end is %d, and the output has %d bytes", e.Frame.RawEnd, p.size)
	}
	return nil
}

// A prover reads the output along with its chunks.
type prover struct {
	in    io.Reader
	size  int64
	at    int64
	whole hash.Hash
	buf   []byte
}

// chunk reads the bytes of c and checks them.
func (p *prover) chunk(c *Chunk, line int) error {
	if err := checkRange(c, p.at, p.size, line); err != nil {
		return err
	}
	part := sha256.New()
	for left := c.Length; left > 0; {
		b := p.buf[:min(left, int64(len(p.buf)))]
		if _, err := io.ReadFull(p.in, b); err != nil {
			return err
		}
		p.whole.Write(b)
		part.Write(b)
		left -= int64(len(b))
	}
	p.at += c.Length
	return checkDigest(c, part.Sum(nil), line)
}

// checkRange refuses a chunk that does not begin where the one before ended, or ends behind the output.
func checkRange(c *Chunk, at, size int64, line int) error {
	switch {
	case c.Length < 0 || c.Offset != at:
		return refuse(ChunksFile, line, ErrChunkRange, "expected offset %d, found offset %d and length %d", at, c.Offset, c.Length)
	case c.Length > MaxChunk:
		return refuse(ChunksFile, line, ErrTooLong, "a chunk has at most %d bytes, found %d", MaxChunk, c.Length)
	case c.Length > size-at:
		return refuse(ChunksFile, line, ErrChunkRange, "expected at most %d bytes, found length %d", size-at, c.Length)
	}
	return nil
}

func checkDigest(c *Chunk, sum []byte, line int) error {
	if c.SHA256 == "" {
		return nil
	}
	want, err := hex.DecodeString(c.SHA256)
	if err != nil || !bytes.Equal(want, sum) {
		return refuse(ChunksFile, line, ErrChunkDigest, "seq %d: expected %s, found %x", c.Seq, c.SHA256, sum)
	}
	return nil
}

// prover returns one that stands before the output.
func (r *Reader) prover() *prover {
	p := &prover{in: strings.NewReader(""), size: r.size, whole: sha256.New(), buf: make([]byte, 256<<10)}
	if r.raw != nil {
		p.in = io.NewSectionReader(r.raw, 0, r.size)
	}
	return p
}

// CheckOutput reads the output along with its index, and refuses of them what Open refuses where it is not Lazy: ErrChunkRange,
// ErrChunkDigest, ErrDigest. Of a cassette that Open has read it looks at nothing.
func (r *Reader) CheckOutput() error {
	if !r.o.Lazy || r.o.Partial {
		return nil
	}
	return r.prove([]Stream{StreamOutput}, nil, func(*Event, int64) {})
}

// covered refuses output behind the last chunk.
func (p *prover) covered() error {
	if p.at != p.size {
		return refuse(ChunksFile, 0, ErrChunkRange, "expected chunks of %d bytes, found %d", p.size, p.at)
	}
	return nil
}

// scan reads everything once, and keeps how far it came.
func (r *Reader) scan() error {
	var last uint64
	var end int64
	err := r.prove(lineStreams, nil, func(e *Event, at int64) { last, end = e.Seq, at })
	if err != nil && Code(err) == "" {
		return err
	}
	r.last, r.size = last, end
	if err == nil {
		return nil
	}
	return r.unfinished(err)
}

func checkWhole(m *Manifest, sum []byte) error {
	want, err := hex.DecodeString(m.ContentDigest.SHA256)
	if err != nil || !bytes.Equal(want, sum) {
		return refuse(OutputFile, 0, ErrDigest, "expected %s, found %x", m.ContentDigest.SHA256, sum)
	}
	return nil
}
