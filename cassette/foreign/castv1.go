package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// castV1 reads asciicast v1: one object, whose "stdout" is an array of [delay, data]. The file is read twice, as what describes
// the terminal may stand behind the array. No more than one value of it is in memory.
type castV1 struct {
	path  string
	f     io.ReadCloser
	s     *jsonscan.Stream
	head  *Header
	time  timeline
	event Event
	torn  bool
	done  bool
}

func newCastV1(path string, open opener) (*castV1, error) {
	first, err := openV1(path, open)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	h, err := first.header()
	if err != nil {
		return nil, err
	}
	c, err := openV1(path, open)
	if err != nil {
		return nil, err
	}
	c.head = h
	if _, err := c.fields(nil); err != nil { // up to the first event
		c.Close()
		return nil, err
	}
	return c, nil
}

func openV1(path string, open opener) (*castV1, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	c := &castV1{path: path, f: f, s: jsonscan.NewStream(f, MaxData)}
	c.s.Begin('{')
	return c, nil
}

func (c *castV1) errorf(err error) error {
	return &Error{Path: c.path, Offset: c.s.Offset(), Err: err}
}

// failed is what keeps the rest from being read; nil for nothing.
func (c *castV1) failed() error {
	err := c.s.Err()
	var long *jsonscan.LongLineError
	var wrong *jsonscan.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &long):
		err = fmt.Errorf("a value of more than %d MiB", MaxData>>20)
	case unexpectedEnd(err):
		err = errors.New("the file ends within the object")
	case errors.As(err, &wrong):
		return &Error{Path: c.path, Offset: wrong.Offset, Err: wrong.Err}
	}
	return c.errorf(err)
}

func (c *castV1) Header() *Header { return c.head }
func (c *castV1) Close() error    { return c.f.Close() }
func (c *castV1) Files() []string { return []string{c.path} }

// header reads the whole file.
func (c *castV1) header() (*Header, error) {
	var h castHeader
	for {
		found, err := c.fields(&h)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		for c.s.More(']') {
			c.s.Skip()
		}
		if unexpectedEnd(c.s.Err()) {
			break // cut in its middle: Next says so
		}
	}
	if h.Version != 1 {
		return nil, c.errorf(fmt.Errorf("asciicast version %d in one object: want 1", h.Version))
	}
	out, err := h.header(AsciicastV1)
	if err != nil {
		return nil, c.errorf(err)
	}
	return out, nil
}

// fields reads members of the object, into h where that is not nil, until the array of events has begun; found is false at the
// object's end.
func (c *castV1) fields(h *castHeader) (found bool, err error) {
	for c.s.More('}') {
		key := string(c.s.Key())
		if key == "stdout" {
			c.s.Begin('[')
			return true, c.failed()
		}
		v := c.s.Raw()
		if c.s.Err() == nil && h != nil {
			if err := h.set(key, v); err != nil {
				return false, c.errorf(err)
			}
		}
	}
	return false, c.failed()
}

func (c *castV1) Next() (*Event, error) {
	if c.done {
		return nil, io.EOF
	}
	if !c.s.More(']') {
		c.done, c.torn = true, c.s.Err() != nil
		return nil, io.EOF
	}
	raw := c.s.Raw()
	if unexpectedEnd(c.s.Err()) {
		c.done, c.torn = true, true
		return nil, io.EOF
	}
	if err := c.failed(); err != nil {
		return nil, err
	}
	if err := c.set(raw); err != nil {
		return nil, c.errorf(err)
	}
	return &c.event, nil
}

func (c *castV1) set(raw []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(raw, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("an event of %d parts: want [delay, data]", len(pair))
	}
	n, err := strconv.ParseFloat(string(pair[0]), 64)
	if err != nil {
		return fmt.Errorf("the delay %s: want seconds", excerpt(pair[0]))
	}
	d, err := duration(n)
	if err != nil {
		return err
	}
	at, err := c.time.step(d)
	if err != nil {
		return err
	}
	c.event = Event{At: at, Kind: Output}
	return c.event.setText(pair[1])
}

func (c *castV1) Notes() []string {
	notes := c.time.notes()
	if c.torn {
		notes = append(notes, "the file is cut off: the recording ends before it should")
	}
	return notes
}
