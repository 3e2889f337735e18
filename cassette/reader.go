package cassette

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"iter"
	"time"
)

// Manifest returns the manifest, with defaults for what may be absent. Of an unfinished one it has what was known at the start.
func (r *Reader) Manifest() *Manifest { return &r.manifest }

// Final returns the final record; nil of an unfinished one.
func (r *Reader) Final() *Final {
	if r.state != StateFinished {
		return nil
	}
	return r.final
}

// ScrubReport returns what scrubbing did; nil where an unfinished one has none.
func (r *Reader) ScrubReport() *ScrubReport { return r.report }

// Quota returns quota.json, nil where there is none.
func (r *Reader) Quota() *Capability { return r.quota }

// Discovery returns discovery.json, nil where there is none.
func (r *Reader) Discovery() *Capability { return r.discovery }

// State says whether the recording came to its end.
func (r *Reader) State() State { return r.state }

// Unfinished returns why State says so: the refusal without Partial. Nil of a finished one.
func (r *Reader) Unfinished() error { return r.why }

// Dir returns the directory.
func (r *Reader) Dir() string { return r.dir }

// Size returns the bytes of output.
func (r *Reader) Size() int64 { return r.size }

// OutputReader returns the output.
func (r *Reader) OutputReader() *io.SectionReader {
	if r.raw == nil {
		return io.NewSectionReader(bytes.NewReader(nil), 0, 0)
	}
	return io.NewSectionReader(r.raw, 0, r.size)
}

// RawOutput returns the output as a whole. It is for small ones.
func (r *Reader) RawOutput() ([]byte, error) { return io.ReadAll(r.OutputReader()) }

// EventsOptions say which events. Nil and zero are all.
type EventsOptions struct {
	From    time.Duration // from the first event whose time is this or later; what is before is not read
	Streams []Stream      // nil: all
	NoBytes bool          // chunks come without their bytes
}

// Events returns events of all streams in the order of seq. It reads as it goes; an event's Bytes are valid until the next.
// After an error it ends.
func (r *Reader) Events(opts *EventsOptions) iter.Seq2[*Event, error] {
	o := EventsOptions{}
	if opts != nil {
		o = *opts
	}
	return func(yield func(*Event, error) bool) {
		m, err := r.merger(&o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer m.close()
		var buf []byte
		for {
			e, err := m.next()
			if errors.Is(err, io.EOF) || r.state == StateUnfinished && r.over(e, err) {
				return
			}
			if err == nil && e.Chunk != nil && !o.NoBytes {
				buf, err = r.bytes(e, buf, m.file.line)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// over reports whether an unfinished cassette ends before e, or with err.
func (r *Reader) over(e *Event, err error) bool {
	if err != nil {
		return Code(err) != ""
	}
	return e.Seq > r.last
}

func (r *Reader) merger(o *EventsOptions) (*merger, error) {
	streams, final := lineStreams, r.final
	if o.Streams != nil {
		streams, final = nil, nil
		for _, s := range o.Streams {
			if s == StreamFinal {
				final = r.final
			} else {
				streams = append(streams, s)
			}
		}
	}
	return newMerger(r.dir, streams, final, o.From, r.o.Partial)
}

// bytes reads the bytes of the chunk e into buf. Where they were not checked by Open they are now.
func (r *Reader) bytes(e *Event, buf []byte, line int) ([]byte, error) {
	c := e.Chunk
	if err := checkRange(c, c.Offset, r.size, line); err != nil {
		return buf, err
	}
	if int64(cap(buf)) < c.Length {
		buf = make([]byte, c.Length)
	}
	e.Bytes = buf[:c.Length]
	if c.Length == 0 {
		return buf, nil
	}
	if _, err := r.raw.ReadAt(e.Bytes, c.Offset); err != nil {
		return buf, err
	}
	if !r.o.Lazy {
		return buf, nil
	}
	sum := sha256.Sum256(e.Bytes)
	return buf, checkDigest(c, sum[:], line)
}
