package cassette

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
