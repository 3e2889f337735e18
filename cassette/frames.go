package cassette

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
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

// A screener keeps a screen beside the masked output and fills the frames that were given a place.
type screener struct {
	screen *vt.Screen
	out    *stream
	live   func(*Frame)
	cuts   []cut // by offset
	at     int64 // how far the screen has read
	end    int64 // how far output was released
	start  int64 // where the last frame ended
	skips  bool
	slots  int // frames among the cuts
}

// A cut is what happens between two bytes of output: another size, or a frame.
type cut struct {
	offset int64
	size   Size // of a resize; zero for a frame
	Timed
	g uint64
}

func newScreener(size Size, out *stream, live func(*Frame)) *screener {
	return &screener{screen: newScreen(size), out: out, live: live}
}

// newScreen returns the screen that frames are of. It has a scrollback, for a terminal that grows shows lines of it again.
func newScreen(size Size) *vt.Screen {
	return vt.New(&vt.Options{Rows: size.Rows, Cols: size.Cols})
}

func (s *screener) behind() bool  { return s.at < s.end }
func (s *screener) waiting() bool { return s.slots > 0 }
func (s *screener) skip(on bool)  { s.skips = on }

func (s *screener) resizeAt(offset int64, size Size) {
	s.cuts = append(s.cuts, cut{offset: offset, size: size})
}

func (s *screener) frameAt(offset int64, at Timed, g uint64) {
	s.slots++
	s.cuts = append(s.cuts, cut{offset: offset, Timed: at, g: g})
}

// released takes the next bytes that the masker let go.
func (s *screener) released(p []byte) error {
	behind := s.skips || s.behind()
	s.end += int64(len(p))
	if behind {
		return nil
	}
	return s.feed(p)
}

// feed shows p, and does what is due at its bytes and behind them.
func (s *screener) feed(p []byte) error {
	for {
		n := int64(len(p))
		if len(s.cuts) > 0 {
			n = min(n, s.cuts[0].offset-s.at)
		}
		s.screen.Write(p[:n])
		s.at += n
		p = p[n:]
		if len(s.cuts) == 0 || s.cuts[0].offset > s.at {
			return nil
		}
		c := s.cuts[0]
		s.cuts = s.cuts[1:]
		if err := s.cut(c); err != nil {
			return err
		}
	}
}

func (s *screener) cut(c cut) error {
	if c.Seq == 0 {
		s.screen.Resize(c.size.Rows, c.size.Cols)
		return nil
	}
	s.slots--
	f := frameOf(s.screen, c.Timed, s.start, s.at)
	f.G = c.g
	s.start = s.at
	if s.live != nil {
		s.live(f)
	}
	return s.out.line(f)
}

// settle does what is due at the present end.
func (s *screener) settle() error { return s.feed(nil) }

// catchUp reads on what was skipped, at most budget bytes.
func (s *screener) catchUp(r io.ReaderAt, budget int64) error {
	buf := make([]byte, min(budget, 64<<10))
	for s.behind() && budget > 0 {
		n := min(int64(len(buf)), s.end-s.at, budget)
		if _, err := r.ReadAt(buf[:n], s.at); err != nil {
			return err
		}
		if err := s.feed(buf[:n]); err != nil {
			return err
		}
		budget -= n
	}
	return nil
}

// frameOf returns what stands on the screen.
func frameOf(s *vt.Screen, at Timed, start, end int64) *Frame {
	rows, cols := s.Size()
	c := s.Cursor()
	return &Frame{Timed: at, Size: Size{rows, cols}, Text: append([]string(nil), s.Text()...), Cursor: Cursor{c.Row, c.Col, c.Visible},
		Title: s.Title(), RawStart: start, RawEnd: end, ParserOffset: end}
}

// A double shows output twice: as it is, and masked.
type double struct {
	raw           io.ReaderAt
	hits          []tty.Hit
	plain, masked *vt.Screen
	at            int64
	buf           []byte
}

func newDouble(raw io.ReaderAt, size Size, hits []tty.Hit) *double {
	return &double{raw: raw, hits: hits, plain: newScreen(size), masked: newScreen(size), buf: make([]byte, 64<<10)}
}

// show reads on up to an offset. One that is behind changes nothing.
func (d *double) show(to int64) error {
	for d.at < to {
		b := d.buf[:min(int64(len(d.buf)), to-d.at)]
		b = b[:blockEnd(d.hits, d.at, int64(len(b)))]
		n, err := d.raw.ReadAt(b, d.at)
		if n < len(b) {
			return err
		}
		d.plain.Write(b)
		m := bytes.Clone(b)
		tty.Mask(m, d.at, within(d.hits, d.at, int64(n)))
		d.masked.Write(m)
		d.at += int64(n)
	}
	return nil
}

func (d *double) resize(s sized) error {
	if err := d.show(s.offset); err != nil {
		return err
	}
	d.plain.Resize(s.size.Rows, s.size.Cols)
	d.masked.Resize(s.size.Rows, s.size.Cols)
	return nil
}
