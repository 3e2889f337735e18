package foreign

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Options are what a file does not say of itself. Nil and zero work.
type Options struct {
	// The parts of a typescript, where the file that is opened is another of them. LogIO is a log of output and input both.
	Timing, LogOut, LogIn, LogIO string
}

// sniffed is how much of a file is looked at to tell its format.
const sniffed = 64 << 10

// Open opens the recording at path, whatever its format is. The error wraps ErrFormat where it is of none that is known.
func Open(path string, o *Options) (Source, error) {
	if o == nil {
		o = &Options{}
	}
	f, err := unpack(path)
	if err != nil {
		return nil, err
	}
	s, err := f.source(path, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (u *unpacked) source(path string, o *Options) (Source, error) {
	b, err := u.Peek(sniffed)
	if err != nil && !unexpectedEnd(err) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch format := tell(b); {
	case format == AsciicastV1:
		return newCastV1(path, u)
	case format == AsciicastV2:
		return newCast(path, u)
	case format == Ttyrec:
		return newTtyrec(path, u), nil
	case format == Typescript, o.Timing != "": // a log may have lost its first line
		u.Close()
		files, err := findTypescript(path, isTiming(b), o)
		if err != nil {
			return nil, err
		}
		return newTypescript(files)
	}
	return nil, fmt.Errorf("%s is %w", path, ErrFormat)
}

// tell says which format the file has that begins with b; asciicast v3 is told as v2, whose reader knows both.
func tell(b []byte) Format {
	switch trimmed := bytes.TrimLeft(b, " \t\r\n"); {
	case len(trimmed) > 0 && trimmed[0] == '{':
		return tellCast(b)
	case bytes.HasPrefix(b, []byte(started)), isTiming(b):
		return Typescript
	case isTtyrec(b):
		return Ttyrec
	}
	return ""
}

// tellCast tells the versions of asciicast apart: 2 and 3 have their whole header in the first line.
func tellCast(b []byte) Format {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	var h struct {
		Version json.Number
		Stdout  json.RawMessage
	}
	if json.Unmarshal(line, &h) != nil || h.Version == "1" || h.Stdout != nil {
		return AsciicastV1
	}
	return AsciicastV2
}

// isTtyrec reports whether the first records of b, as far as they are there, can be those of a ttyrec.
func isTtyrec(b []byte) bool {
	if len(b) < ttyrecHead {
		return false
	}
	var last uint32
	for n := 0; len(b) >= ttyrecHead && n < 16; n++ {
		if _, _, err := parseTtyrec([ttyrecHead]byte(b)); err != nil {
			return n > 1 // its reader says where it is wrong
		}
		sec := binary.LittleEndian.Uint32(b)
		if n > 0 && (sec > last+uint32(MaxDelay.Seconds()) || last > sec+uint32(MaxDelay.Seconds())) {
			return n > 1
		}
		last = sec
		length := int(binary.LittleEndian.Uint32(b[8:]))
		if length == 0 && n == 0 && sec == 0 {
			return false // zeros
		}
		b = b[min(len(b), ttyrecHead+length):]
	}
	return true
}

// unpacked is a file that is read through a decompressor.
type unpacked struct {
	*bufio.Reader
	f *os.File
}

func (u *unpacked) Close() error { return u.f.Close() }

// unpack opens the file; what gzip or bzip2 packed is unpacked as it is read. A byte order mark before the object with which an asciicast
// begins is left out.
func unpack(path string) (*unpacked, error) {
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: want a recording of asciinema, ttyrec or script", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	u := &unpacked{bufio.NewReaderSize(f, sniffed), f}
	head, _ := u.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(u.Reader)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		u.Reader = bufio.NewReaderSize(z, sniffed)
	case bytes.HasPrefix(head, []byte("BZh")):
		u.Reader = bufio.NewReaderSize(bzip2.NewReader(u.Reader), sniffed)
	}
	const mark = "\ufeff"
	if head, _ := u.Peek(len(mark) + 1); string(head) == mark+"{" {
		_, _ = u.Discard(len(mark))
	}
	return u, nil
}

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

// A timingLine is one line of script's timing file.
//
//	0.294450 8                          old: delay, bytes of output
//	O 0.294450 8                        advanced: so many bytes of the output log
//	I 0.294450 8                        of the input log
//	S 0.294450 SIGWINCH ROWS=20 COLS=50 a signal
//	H 0.000000 EXIT_CODE 0              a fact
type timingLine struct {
	stream byte // O, I, S or H; O for the old form
	delay  time.Duration
	n      int64  // bytes, for O and I
	name   string // of a signal or a fact
	rest   string
}

// parseTiming reads a line. The error has no line number.
func parseTiming(b []byte) (timingLine, error) {
	var l timingLine
	l.stream = 'O'
	rest := string(b)
	if len(b) > 2 && b[1] == ' ' && bytes.IndexByte([]byte("OISH"), b[0]) >= 0 {
		l.stream, rest = b[0], rest[2:]
	}
	delay, rest, ok := strings.Cut(rest, " ")
	secs, err := strconv.ParseFloat(delay, 64)
	if err != nil || !ok {
		return l, fmt.Errorf("want a delay and a number of bytes, or O, I, S or H before them, not %s", excerpt(b))
	}
	if l.delay, err = duration(secs); err != nil {
		return l, err
	}
	if l.stream == 'S' || l.stream == 'H' {
		l.name, l.rest, _ = strings.Cut(rest, " ")
		return l, nil
	}
	if l.n, err = strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err != nil || l.n < 0 {
		return l, fmt.Errorf("the number of bytes %s: want a whole number", excerpt([]byte(rest)))
	}
	return l, nil
}

// isTiming reports whether a file that begins with b is a timing file.
func isTiming(b []byte) bool {
	line, _, whole := bytes.Cut(b, []byte("\n"))
	l, err := parseTiming(line)
	if err != nil || !whole {
		return false
	}
	return l.stream != 'S' && l.delay >= 0
}

// winch is the size that a SIGWINCH line tells: "ROWS=20 COLS=50".
func winch(s string) (rows, cols int, err error) {
	for _, f := range strings.Fields(s) {
		key, v, _ := strings.Cut(f, "=")
		n, errN := strconv.Atoi(v)
		if errN != nil {
			return 0, 0, fmt.Errorf("the size %s: want ROWS=n COLS=n", excerpt([]byte(s)))
		}
		switch key {
		case "ROWS":
			rows = n
		case "COLS":
			cols = n
		}
	}
	return rows, cols, checkSize(rows, cols)
}

// scriptTime reads the times of script: 2026-11-22 09:24:23+00:00.
func scriptTime(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05-07:00", s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// text makes a stream of bytes one of valid UTF-8, whatever it is cut into.
type text struct {
	held     []byte // the beginning of a sequence
	out      []byte
	replaced int // bytes, or beginnings of sequences, that became U+FFFD
}

// add returns what is whole of what was held and b. It is valid until the next call.
func (t *text) add(b []byte) []byte {
	if len(t.held) == 0 && utf8.Valid(b) {
		return b
	}
	t.held = append(t.held, b...)
	t.out = t.out[:0]
	b = t.held
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			t.replaced++
		}
		t.out = utf8.AppendRune(t.out, r)
		b = b[n:]
	}
	t.held = append(t.held[:0], b...)
	return t.out
}

// end returns what is still held: an unfinished sequence is none.
func (t *text) end() []byte {
	if len(t.held) == 0 {
		return nil
	}
	t.held = t.held[:0]
	t.replaced++
	return utf8.AppendRune(t.out[:0], utf8.RuneError)
}

// lines reads lines of at most MaxData bytes.
type lines struct{ *jsonscan.Lines }

func newLines(r io.Reader) lines { return lines{jsonscan.NewLines(r, MaxData)} }

// next returns the next line without its end, valid until the next call; io.EOF after the last.
func (l lines) next() ([]byte, error) {
	b, err := l.Next()
	var long *jsonscan.LongLineError
	if errors.As(err, &long) {
		err = fmt.Errorf("a line of more than %d MiB", MaxData>>20)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")), err
}
