package testbench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An output is the tape that a run writes: a file, a writer of the caller's, memory, or two of them.
type output struct {
	rec   *tape.Recorder
	store cas.Store
	file  *tapeFile     // nil where there is none
	kept  *bytes.Buffer // nil where it is not kept in memory
}

// newOutput is the tape that c asks for; nil where it asks for none. What stands at its path stays until begin.
func newOutput(c *Config, h *tape.Header, o tape.RecorderOptions) (*output, error) {
	out := &output{store: cas.NewMemory()}
	var w io.Writer
	switch {
	case c.Emit != "":
		file, err := newTapeFile(c.Emit, c.maxTape())
		if err != nil {
			return nil, fmt.Errorf("testbench: the run's tape: %w", err)
		}
		out.file, out.store, w = file, file, file
	case c.EmitTo != nil && c.Keep:
		out.kept = new(bytes.Buffer)
		w = io.MultiWriter(c.EmitTo, out.kept)
	case c.EmitTo != nil:
		w = c.EmitTo
	case c.Keep:
		out.kept = new(bytes.Buffer)
		w = out.kept
	default:
		return nil, nil
	}
	tw, err := tape.NewWriter(w, h)
	if err != nil {
		return nil, fmt.Errorf("testbench: the run's tape: %w", err)
	}
	o.Store = out.store
	out.rec = tape.NewRecorder(tw, &o)
	return out, nil
}

// begin makes the file: all else that the run needs is there.
func (o *output) begin() error {
	if o.file == nil {
		return nil
	}
	if err := o.file.create(); err != nil {
		return fmt.Errorf("testbench: the run's tape: %w", err)
	}
	return nil
}

// close hands the tape to the kernel.
func (o *output) close() error {
	if o.file != nil && !o.file.begun() {
		return nil // the run did not begin
	}
	err := o.rec.Flush()
	if o.file != nil {
		err = errors.Join(err, o.file.close())
	}
	if err != nil {
		return fmt.Errorf("testbench: the run's tape: %w", err)
	}
	return nil
}

// read returns what was recorded so far.
func (o *output) read() (*tape.Header, []*tape.Record, error) {
	if err := o.rec.Flush(); err != nil {
		return nil, nil, err
	}
	var r io.Reader
	name := "the run's tape"
	switch {
	case o.kept != nil:
		r = bytes.NewReader(o.kept.Bytes())
	case o.file != nil:
		f, err := os.Open(o.file.path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		r, name = f, o.file.path
	default:
		return nil, nil, errors.New("testbench: the run's tape went to Config.EmitTo; set Config.Keep to have it here too")
	}
	t, err := tape.NewReader(r, name)
	if err != nil {
		return nil, nil, err
	}
	var all []*tape.Record
	for rec, err := range t.Records() {
		if err != nil {
			return nil, nil, err
		}
		all = append(all, rec)
	}
	return t.Header(), all, nil
}
