package foreign

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Format is one that Open reads.
type Format string

// The formats.
const (
	AsciicastV1 Format = "asciicast-v1"
	AsciicastV2 Format = "asciicast-v2"
	AsciicastV3 Format = "asciicast-v3"
	Ttyrec      Format = "ttyrec"
	Typescript  Format = "typescript"
)

// Limits of what a file may hold.
const (
	MaxData  = 16 << 20                  // bytes of one event, and of one line or JSON value
	MaxDelay = 366 * 24 * time.Hour      // between two events
	MaxTime  = 20 * 366 * 24 * time.Hour // since the first one
)

// The size of a terminal that a file says nothing of.
const (
	DefaultRows = 24
	DefaultCols = 80
	DefaultTerm = "xterm-256color"
)

// A Kind says what an Event is, in the letters of asciicast.
type Kind byte

// The kinds of Event.
const (
	Output Kind = 'o' // Data is what the program wrote
	Input  Kind = 'i' // Data is what was typed
	Resize Kind = 'r' // Rows, Cols
	Marker Kind = 'm' // Data is the label, UTF-8; may be empty
	Exit   Kind = 'x' // Code; the last event
	Signal Kind = 's' // Data is the name, such as SIGTERM; asciicast has none
)

// An Event is one thing that happened in a session.
type Event struct {
	At         time.Duration // since the beginning of the session; never less than that of the event before
	Kind       Kind
	Data       []byte // valid until the next event is asked for
	Rows, Cols int
	Code       int
}

// A Header is what a file says of its session. Everything may be empty but Format.
type Header struct {
	Format      Format
	Rows, Cols  int // 0 where the file does not say
	Term        string
	TermVersion string // answer to XTVERSION
	Theme       *Theme
	Started     time.Time
	Duration    time.Duration
	IdleLimit   time.Duration // longer pauses are to be shortened to this
	Command     string        // as a shell would take it
	Title       string
	Env         map[string]string
	Tags        []string
}

// A Theme is the colours of a terminal, as #rrggbb; Palette is 8 or 16 of them with colons between.
type Theme struct {
	FG      string `json:"fg"`
	BG      string `json:"bg"`
	Palette string `json:"palette"`
}

// A Source is a foreign recording that is being read. It is for one goroutine.
type Source interface {
	Header() *Header
	// Next returns the next event, io.EOF after the last one, or an *Error.
	Next() (*Event, error)
	// Notes are what was wrong with the file and did no harm, complete after io.EOF.
	Notes() []string
	// Files are the paths that are read.
	Files() []string
	Close() error
}

// An Error says where a file is not what it should be.
type Error struct {
	Path   string
	Line   int   // from 1; 0 where the format has no lines
	Offset int64 // bytes, where Line is 0
	Err    error
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("%s, offset %d: %v", e.Path, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrFormat is wrapped by the error of Open where a file is of no format that this package knows.
var ErrFormat = errors.New("neither an asciicast (v1, v2, v3), a ttyrec, nor a typescript or its timing")

// A timeline makes the times of a file ones that never go back.
type timeline struct {
	at     time.Duration
	turned int // times that went back
}

var errTime = fmt.Errorf("a time is out of range: want at most %d days after the event before, and not before the first", int(MaxDelay.Hours()/24))

// step goes on by d.
func (t *timeline) step(d time.Duration) (time.Duration, error) {
	if d < 0 {
		t.turned++
		d = 0
	}
	if d > MaxDelay || t.at+d > MaxTime {
		return 0, errTime
	}
	t.at += d
	return t.at, nil
}

// to goes to the absolute time at.
func (t *timeline) to(at time.Duration) (time.Duration, error) { return t.step(at - t.at) }

func (t *timeline) notes() []string {
	if t.turned == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the clock of the file went back %d times: the time stands still there", t.turned)}
}

// checkSize refuses what is no size of a terminal.
func checkSize(rows, cols int) error {
	if rows < 1 || cols < 1 || rows > vt.MaxSize || cols > vt.MaxSize {
		return fmt.Errorf("a terminal of %d rows and %d columns: want 1 to %d of each", rows, cols, vt.MaxSize)
	}
	return nil
}

// unexpectedEnd reports whether err says that a file ends too early.
func unexpectedEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
