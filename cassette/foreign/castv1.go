package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// castV1 reads asciicast v1: one object, whose "stdout" is an array of [delay, data]. The file is read twice, as what describes
// the terminal may stand behind the array.
type castV1 struct {
	path  string
	f     io.ReadCloser
	dec   *json.Decoder
	room  *room
	head  *Header
	time  timeline
	event Event
	torn  bool
	done  bool
}

// room is a reader that gives only so much beyond what has been taken, so that no value of the file fills the memory.
type room struct {
	r     io.Reader
	given int64
	most  int64
}

var errRoom = fmt.Errorf("a value of more than %d MiB", MaxData>>20)

func (r *room) Read(p []byte) (int, error) {
	if r.given >= r.most {
		return 0, errRoom
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.most-r.given)])
	r.given += int64(n)
	return n, err
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
	r := &room{r: f, most: MaxData}
	c := &castV1{path: path, f: f, room: r, dec: json.NewDecoder(r)}
	c.dec.UseNumber()
	if err := c.open('{'); err != nil {
		f.Close()
		return nil, c.errorf(err)
	}
	return c, nil
}

func (c *castV1) errorf(err error) error {
	return &Error{Path: c.path, Offset: c.dec.InputOffset(), Err: err}
}

func (c *castV1) Header() *Header { return c.head }
func (c *castV1) Close() error    { return c.f.Close() }
func (c *castV1) Files() []string { return []string{c.path} }

// token is the next token, for which there is room.
func (c *castV1) token() (json.Token, error) {
	c.room.most = c.dec.InputOffset() + MaxData
	return c.dec.Token()
}

// open takes the delimiter d.
func (c *castV1) open(d json.Delim) error {
	t, err := c.token()
	if err != nil {
		return err
	}
	if t != d {
		return fmt.Errorf("want %s, not %v", d, excerpt([]byte(fmt.Sprint(t))))
	}
	return nil
}

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
		if err := c.skip(1); unexpectedEnd(err) {
			break // cut in its middle: Next says so
		} else if err != nil {
			return nil, c.errorf(err)
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
	for {
		t, err := c.token()
		if err != nil {
			return false, c.errorf(ending(err))
		}
		key, ok := t.(string)
		if !ok {
			return false, nil // the closing brace
		}
		if key == "stdout" {
			if err := c.open('['); err != nil {
				return false, c.errorf(ending(err))
			}
			return true, nil
		}
		c.room.most = c.dec.InputOffset() + MaxData
		var v json.RawMessage
		if err := c.dec.Decode(&v); err != nil {
			return false, c.errorf(ending(err))
		}
		if h == nil {
			continue
		}
		if err := h.set(key, v); err != nil {
			return false, c.errorf(err)
		}
	}
}

func ending(err error) error {
	if unexpectedEnd(err) {
		return errors.New("the file ends within the object")
	}
	return err
}

// skip reads up to the end of the depth-th array or object around.
func (c *castV1) skip(depth int) error {
	for depth > 0 {
		t, err := c.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}

func (c *castV1) Next() (*Event, error) {
	if c.done {
		return nil, io.EOF
	}
	c.room.most = c.dec.InputOffset() + MaxData
	if !c.dec.More() {
		c.done = true
		_, err := c.token() // the closing bracket
		c.torn = err != nil
		return nil, io.EOF
	}
	var pair []json.RawMessage
	err := c.dec.Decode(&pair)
	switch {
	case unexpectedEnd(err):
		c.done, c.torn = true, true
		return nil, io.EOF
	case err != nil:
		return nil, c.errorf(err)
	case len(pair) != 2:
		return nil, c.errorf(fmt.Errorf("an event of %d parts: want [delay, data]", len(pair)))
	}
	if err := c.set(pair); err != nil {
		return nil, c.errorf(err)
	}
	return &c.event, nil
}

func (c *castV1) set(pair []json.RawMessage) error {
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
