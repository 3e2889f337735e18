package picture

import "time"

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
