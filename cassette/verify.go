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
	m, err := newMerger(v.r.dir, lineStreams, v.r.final, 0, true)
	if err != nil {
		return err
	}
	defer m.close()
	m.note = v.note
	p := v.r.prover()
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			return v.end(m, p)
		}
		if err != nil {
			return err
		}
		if err := v.event(e, m.file.line, p); err != nil {
			return err
		}
	}
}

func (v *verifier) event(e *Event, line int, p *prover) error {
	v.out.Events++
	switch e.Stream {
	case StreamOutput:
		v.out.Chunks++
		err := p.chunk(e.Chunk, line)
		if errors.Is(err, ErrChunkRange) || errors.Is(err, ErrTooLong) {
			p.resume(v.r, e.Chunk)
		}
		return v.note(err)
	case StreamFrames:
		v.out.Frames++
		if e.Frame.RawEnd < 0 || e.Frame.RawEnd > v.r.size {
			return v.note(refuse(FramesFile, line, ErrChunkRange, "raw_end is %d, and the output has %d bytes", e.Frame.RawEnd, v.r.size))
		}
	}
	return nil
}

// resume goes on behind a chunk whose range is wrong, so that the next ones are looked at.
func (p *prover) resume(r *Reader, c *Chunk) {
	if end := c.Offset + c.Length; r.raw != nil && c.Offset >= 0 && c.Length >= 0 && end >= 0 && end <= p.size {
		p.at = end
		p.in = io.NewSectionReader(r.raw, end, p.size-end)
	}
}

// end compares the digest of all the output, which is read as a whole where the chunks did not.
func (v *verifier) end(m *merger, p *prover) error {
	v.out.Bytes = v.r.size
	if err := v.note(p.covered()); err != nil {
		return err
	}
	if v.r.final != nil && m.file != nil && m.file.stream != StreamFinal {
		if err := v.note(refuse(m.file.stream.File(), m.file.line, ErrSequence, "nothing may come behind the final record")); err != nil {
			return err
		}
	}
	if v.r.raw == nil || v.r.manifest.ContentDigest.SHA256 == "" {
		return nil
	}
	whole := sha256.New()
	if _, err := io.Copy(whole, v.r.OutputReader()); err != nil {
		return err
	}
	return v.note(checkWhole(&v.r.manifest, whole.Sum(nil)))
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
	m, err := newMerger(r.dir, []Stream{StreamOutput}, nil, 0, false)
	if err != nil {
		return err
	}
	defer m.close()
	p := r.prover()
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := p.chunk(e.Chunk, m.file.line); err != nil {
			return err
		}
	}
	if err := p.covered(); err != nil {
		return err
	}
	return checkWhole(&r.manifest, p.whole.Sum(nil))
}

// covered refuses output behind the last chunk.
func (p *prover) covered() error {
	if p.at != p.size {
		return refuse(ChunksFile, 0, ErrChunkRange, "expected chunks of %d bytes, found %d", p.size, p.at)
	}
	return nil
}

// scan reads everything once.
func (r *Reader) scan() error {
	m, err := newMerger(r.dir, lineStreams, r.final, 0, r.o.Partial)
	if err != nil {
		return err
	}
	defer m.close()
	p := r.prover()
	err = r.walk(m, p)
	if err == nil {
		err = r.end(m, p)
	}
	if err == nil {
		return nil
	}
	if Code(err) == "" {
		return err
	}
	return r.unfinished(err)
}

// walk checks each event, and keeps how far it came.
func (r *Reader) walk(m *merger, p *prover) error {
	size := r.size
	r.last, r.size = 0, 0
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			p.size = size
			return nil
		}
		if err != nil {
			return err
		}
		if e.Chunk != nil {
			if err := p.chunk(e.Chunk, m.file.line); err != nil {
				return err
			}
		}
		r.last, r.size = e.Seq, p.at
	}
}

// end checks what can be told at the end alone.
func (r *Reader) end(m *merger, p *prover) error {
	if err := p.covered(); err != nil {
		return err
	}
	if r.final != nil && m.file.stream != StreamFinal {
		return refuse(m.file.stream.File(), m.file.line, ErrSequence, "nothing may come behind the final record")
	}
	if r.state == StateUnfinished {
		return nil
	}
	return checkWhole(&r.manifest, p.whole.Sum(nil))
}

func checkWhole(m *Manifest, sum []byte) error {
	want, err := hex.DecodeString(m.ContentDigest.SHA256)
	if err != nil || !bytes.Equal(want, sum) {
		return refuse(OutputFile, 0, ErrDigest, "expected %s, found %x", m.ContentDigest.SHA256, sum)
	}
	return nil
}
