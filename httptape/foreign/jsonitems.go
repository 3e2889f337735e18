package foreign

import (
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A jsonFile reads one long JSON object, of which no more than one value is in memory.
type jsonFile struct{ s *jsonscan.Stream }

func newJSONFile(r io.Reader) jsonFile {
	f := jsonFile{jsonscan.NewStream(r, MaxItem)}
	f.s.SkipMark()
	return f
}

var (
	errCut     = errors.New("the file ends in the middle: it was cut")
	errTooLong = fmt.Errorf("a value has more than %d bytes, the limit", MaxItem)
)

// err is what keeps the rest from being read.
func (f jsonFile) err() error {
	err := f.s.Err()
	if _, long := errors.AsType[*jsonscan.LongLineError](err); long {
		return errTooLong
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// where is the place of err; "" for an error of the stream, which names it.
func (f jsonFile) where(err error) string {
	if failed := f.s.Err(); failed != nil && errors.Is(err, failed) {
		return ""
	}
	return fmt.Sprintf("byte %d", f.s.Offset()+1)
}

// value returns the next value as it stands, valid until the next read. It is as long as its brackets say; what is in it nobody
// has looked at.
func (f jsonFile) value() ([]byte, error) {
	b := f.s.Raw()
	return b, f.err()
}

// skip steps over the next value.
func (f jsonFile) skip() error {
	f.s.Skip()
	return f.err()
}

// maxMembers bounds the members of the objects around the items.
const maxMembers = 1000

// object reads an object, member by member: member is to read the value.
func (f jsonFile) object(member func(key string) error) error {
	seen := make(map[string]bool)
	for f.s.Begin('{'); f.s.More('}'); {
		key := string(f.s.Key())
		if err := f.err(); err != nil {
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
	return f.err()
}

// list reads a list, value by value.
func (f jsonFile) list(item func(raw []byte) error) error {
	for f.s.Begin('['); f.s.More(']'); {
		raw, err := f.value()
		if err == nil {
			err = item(raw)
		}
		if err != nil {
			return err
		}
	}
	return f.err()
}

// end fails where something other than white space follows.
func (f jsonFile) end() error {
	if err := f.s.End(); err == nil {
		return nil
	}
	return f.err()
}
