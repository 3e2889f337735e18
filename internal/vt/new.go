package vt

// A Screen is a terminal's screen. It is for one goroutine.
type Screen struct{ o Options }

// New returns an empty screen.
func New(o *Options) *Screen {
	s := new(Screen)
	if o != nil {
		s.o = *o
	}
	return s
}
