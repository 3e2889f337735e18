package cassette

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

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
