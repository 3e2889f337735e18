package cassette

import (
	"errors"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Frames returns the frames that were recorded.
func (r *Reader) Frames() iter.Seq2[*Frame, error] {
	return func(yield func(*Frame, error) bool) {
		for e, err := range r.Events(&EventsOptions{Streams: []Stream{StreamFrames}}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e.Frame, nil) {
				return
			}
		}
	}
}

// LastFrame returns the last frame that was recorded, nil where there is none. It does not read those before.
func (r *Reader) LastFrame() (*Frame, error) {
	if r.state == StateUnfinished {
		return r.frameBefore(func(t Timed) bool { return t.Seq > r.last })
	}
	return r.frameBefore(nil)
}

// FrameAt returns the last frame that was recorded at t or before, nil where there is none. It reads little more than that
// one.
func (r *Reader) FrameAt(t time.Duration) (*Frame, error) {
	return r.frameBefore(func(at Timed) bool {
		return at.Time() > t || r.state == StateUnfinished && at.Seq > r.last
	})
}

// Time returns the time since the start.
func (t Timed) Time() time.Duration { return milliseconds(t.TMS) }

// Duration returns how long the program ran.
func (f *Final) Duration() time.Duration { return milliseconds(f.DurationMS) }

// milliseconds is the longest duration, 292 years, for all that is longer, and the shortest likewise.
func milliseconds(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

// frameBefore returns the frame before the first one that is behind; nil: the last one.
func (r *Reader) frameBefore(behind func(Timed) bool) (*Frame, error) {
	f, err := openRegular(filepath.Join(r.dir, FramesFile))
	if errors.Is(err, fs.ErrNotExist) && r.o.Partial {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	end := st.Size()
	if behind != nil {
		if end, err = findLine(f, StreamFrames, end, r.state == StateUnfinished, behind); err != nil {
			return nil, err
		}
	}
	b, err := lastLine(f, StreamFrames, end)
	if b == nil || err != nil {
		return nil, err
	}
	e, err := decodeEvent(StreamFrames, 0, b)
	if err != nil {
		return nil, err
	}
	return e.Frame, nil
}

// A Shot is an event and the screen after it.
type Shot struct {
	*Event
	Screen *vt.Screen // goes on changing with the next one
}

// Screens returns every event with the screen as it stood after it, made from the output and the resizes by our own model. opts
// are those of the screen, but for the size; nil works.
func (r *Reader) Screens(opts *vt.Options) iter.Seq2[*Shot, error] { return r.screens(opts, nil) }

func (r *Reader) screens(opts *vt.Options, streams []Stream) iter.Seq2[*Shot, error] {
	return func(yield func(*Shot, error) bool) {
		var o vt.Options
		if opts != nil {
			o = *opts
		}
		o.Rows, o.Cols = r.manifest.Terminal.InitialRows, r.manifest.Terminal.InitialCols
		s := vt.New(&o)
		for e, err := range r.Events(&EventsOptions{Streams: streams}) {
			if err != nil {
				yield(nil, err)
				return
			}
			show(s, e)
			if !yield(&Shot{e, s}, nil) {
				return
			}
		}
	}
}

// show does to the screen what e did.
func show(s *vt.Screen, e *Event) {
	switch {
	case e.Chunk != nil:
		s.Write(e.Bytes)
	case e.Input != nil && e.Input.Kind == KindResize && e.Input.Size != nil:
		s.Resize(e.Input.Size.Rows, e.Input.Size.Cols)
	}
}

// DeriveOptions say which frames. Nil and zero are all.
type DeriveOptions struct {
	From time.Duration // frames of chunks before this are not given; the screen is made of them all the same
}

// Derive returns one frame after each chunk, made from the output and the resizes by our own model, with the chunk's seq, time
// and ordinal. It knows what was printed, not what the recorder chose to keep.
func (r *Reader) Derive(opts *DeriveOptions) iter.Seq2[*Frame, error] {
	var from time.Duration
	if opts != nil {
		from = opts.From
	}
	return func(yield func(*Frame, error) bool) {
		for s, err := range r.screens(nil, []Stream{StreamInput, StreamOutput}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if s.Chunk == nil || s.Time() < from {
				continue
			}
			f := frameOf(s.Screen, s.Timed, s.Chunk.Offset, s.Chunk.Offset+s.Chunk.Length)
			f.G = s.G
			if !yield(f, nil) {
				return
			}
		}
	}
}
