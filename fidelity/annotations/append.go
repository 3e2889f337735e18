package annotations

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Append adds a to the sidecar of the tape at tapePath, which it begins where there is none; producer is our name and version for
// its header. An empty ID and Timestamp are filled in, in a too. What would be a problem of the new line is refused (an event
// that the tape lacks, an id that is there, a field that its kind demands), and so is a sidecar that is not this tape's.
//
// Several processes may append at once: the tape itself is what they lock.
func Append(tapePath, producer string, a *Annotation) error {
	lock := flock.New(tapePath, flock.SetFlag(os.O_RDONLY)) // no lock file: a recording holds what its seal knows
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the tape: %w", err)
	}
	defer lock.Unlock()
	s, err := Open(tapePath)
	if err != nil {
		return err
	}
	if s == nil {
		digest, err := digestOf(tapePath)
		if err != nil {
			return err
		}
		s = &Sidecar{Header: Header{SchemaVersion, filepath.ToSlash(filepath.Base(tapePath)), digest, producer}}
	}
	if err := s.accept(tapePath, a); err != nil {
		return err
	}
	return s.write(tapePath, a)
}

// accept fills a in and refuses it where it would not hold.
func (s *Sidecar) accept(tapePath string, a *Annotation) error {
	if a.ID == "" {
		a.ID = nextID(s.Annotations)
	}
	if a.Timestamp == "" {
		a.Timestamp = now()
	}
	a.missing = a.lacks()
	alone := &Sidecar{Header: s.Header, Annotations: []*Annotation{a}, path: s.path}
	for _, other := range s.Annotations {
		if other.ID == a.ID {
			return refuse([]Problem{{Message: fmt.Sprintf("the id %q stands in line %d already", a.ID, other.line)}})
		}
	}
	problems, err := Validate(alone, tapePath)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return refuse(problems)
	}
	return nil
}

// write puts a behind the whole lines of the sidecar, and the header before it where there are none.
func (s *Sidecar) write(tapePath string, a *Annotation) error {
	var b []byte
	var err error
	if s.size == 0 {
		if b, err = line("header", s.Header); err != nil {
			return err
		}
	}
	said, err := line("annotation", a)
	if err != nil {
		return err
	}
	if len(said) > MaxLine {
		return fmt.Errorf("%w: it would take %d bytes: say it in fewer words, or link to it", ErrLineTooLong, len(said))
	}
	f, err := os.OpenFile(tapePath+Suffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(s.put(f, append(b, said...)), f.Close())
}

// put writes b over what stands behind the whole lines: nothing, or the half of one that a crash left.
func (s *Sidecar) put(f *os.File, b []byte) error {
	if err := f.Truncate(s.size); err != nil {
		return err
	}
	if s.size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, s.size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // whole, and without its newline
			b = append([]byte{'\n'}, b...)
		}
	}
	if _, err := f.WriteAt(b, s.size); err != nil {
		return err
	}
	return f.Sync()
}

// line is v as a line whose first key is its type.
func line(typ string, v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\"type\":%q,%s\n", typ, b[1:]), nil
}

// digestOf is the digest of a file's bytes.
func digestOf(path string) (cas.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return cas.Digest{}, err
	}
	defer f.Close()
	h := cas.NewHasher()
	_, err = io.Copy(h, f)
	return h.Sum(), err
}
