package picture

import (
	"math"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
)

// Defaults of Options.
const (
	DefaultFPS     = 20
	MaxFPS         = 50 // a GIF's unit is 10 ms, and browsers show no picture for less than two
	DefaultMaxIdle = 5 * time.Second
	DefaultScale   = 1
	MaxScale       = 4
)

// Options say what is shown, and how. Nil and the zero value work.
type Options struct {
	From, To time.Duration // the part of the session that is shown; To 0 is its end
	// Still shows one screen: that of At. GIF and HTML know no Still.
	Still   bool
	At      time.Duration // the time in the session; 0 is its end
	Speed   float64       // how many times as fast; 0 is 1
	MaxIdle time.Duration // the longest pause; 0 is DefaultMaxIdle, below 0 pauses are as they were
	FPS     float64       // the most pictures a second of the film; 0 is DefaultFPS, at most MaxFPS
	Theme   *Theme        // nil is Dark
	Scale   int           // GIF: pixels a unit of a cell of 8 by 16; SVG: the size that it asks for. 0 is 1
	Title   string        // "" is what the program called its window, else its command
	Window  bool          // GIF and SVG: a window with a title around it
	// Keys has the page say what was typed even where the screen did not show it, as with a password. Without it such an input is
	// called by the number of its letters.
	Keys bool
	// Progress is told how much of the session is done. Nil is silent.
	Progress func(done, total time.Duration)
}

// settings are Options with everything filled in.
type settings struct {
	Options
	step time.Duration // of the session, between two pictures
}

func (o *Options) settings() settings {
	var s settings
	if o != nil {
		s.Options = *o
	}
	if !(s.Speed > 0) {
		s.Speed = 1
	}
	if !(s.FPS > 0) {
		s.FPS = DefaultFPS
	}
	s.FPS = min(s.FPS, MaxFPS)
	if s.MaxIdle == 0 {
		s.MaxIdle = DefaultMaxIdle
	}
	if s.Theme == nil {
		s.Theme = Dark
	}
	s.Scale = min(max(s.Scale, DefaultScale), MaxScale)
	if s.Progress == nil {
		s.Progress = func(time.Duration, time.Duration) {}
	}
	s.step = time.Duration(float64(time.Second) * s.Speed / s.FPS)
	return s
}

// The three lights of a window, and where the first stands and how far the next: in units.
var lights = [3]RGB{0xF2655D, 0xF5BD4F, 0x61C454}

const (
	lightX, lightY = 15, 12
	lightStep      = 15
	lightRadius    = 4.5
)

func (g *gifMaker) surroundColors(pairs map[pair]bool, solid map[RGB]bool) {
	solid[g.paint.bg] = true
	if !g.Window {
		return
	}
	solid[g.Theme.Bar] = true
	pairs[pair{g.Theme.BarText, g.Theme.Bar}] = true
	for _, c := range lights {
		pairs[pair{c, g.Theme.Bar}] = true
	}
}

// surround draws what stands around the screen.
func (g *gifMaker) surround(t *target, s *session, title string) {
	t.fill(0, 0, g.w.width, g.w.height, t.pal.of(g.paint.bg))
	if !g.Window {
		return
	}
	t.fill(0, 0, g.w.width, 20*g.Scale, t.pal.of(g.Theme.Bar))
	r := lightRadius * float64(g.Scale)
	for i, c := range lights {
		m := disc(r)
		x, y := (lightX+i*lightStep)*g.Scale-m.W/2, lightY*g.Scale-m.H/2-2*g.Scale
		if x+m.W <= g.w.width {
			t.mask(x, y, m, t.pal.ramp(pair{c, g.Theme.Bar}))
		}
	}
	g.title(t, g.settings.title(s, title))
}

// title stands in the middle of the bar, or is cut.
func (g *gifMaker) title(t *target, title string) {
	chars := []rune(title)
	from := (lightX + 3*lightStep) * g.Scale
	step := cellfont.Width * g.Scale
	if room := (g.w.width - 2*from) / step; len(chars) > room {
		chars = chars[:max(room, 0)]
	}
	x := (g.w.width - len(chars)*step) / 2
	for _, c := range chars {
		l := look{text: string(c), width: 1, fg: g.Theme.BarText, bg: g.Theme.Bar}
		t.mask(x, 2*g.Scale, g.glyphs.mask(&l), t.pal.ramp(pair{l.fg, l.bg}))
		x += step
	}
}

// disc is a filled circle.
func disc(r float64) *cellfont.Mask {
	n := int(math.Ceil(2 * r))
	m := &cellfont.Mask{W: n, H: n, Pix: make([]uint8, n*n)}
	for i := range m.Pix {
		d := math.Hypot(float64(i%n)+0.5-float64(n)/2, float64(i/n)+0.5-float64(n)/2)
		m.Pix[i] = uint8(math.Round(min(max(r-d+0.5, 0), 1) * (cellfont.Levels - 1)))
	}
	return m
}

// title is what the caller says, or the program, or its command.
func (s settings) title(of *session, program string) string {
	for _, t := range []string{s.Title, program, of.command} {
		if t = clean(t); t != "" {
			return t
		}
	}
	return "terminal"
}
