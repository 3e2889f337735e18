package cassette

import "github.com/tapedeck-dev/tapedeck/internal/vt"

// A model is what is asked of a screen.
type model interface {
	Write(p []byte) (int, error)
	Resize(rows, cols int)
	Size() (rows, cols int)
	Cursor() vt.Cursor
	Title() string
	Text() []string
}

func modelOf(s *vt.Screen) model { return any(s).(model) }
