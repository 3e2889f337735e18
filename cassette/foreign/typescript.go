package foreign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// typescript reads what script(1) of util-linux wrote: a timing file and the logs that its lines count the bytes of.
type typescript struct {
	path    string // of the timing
	f       io.ReadCloser
	lines   lines
	head    Header
	out, in *typelog // the same where one log holds both
	time    timeline
	event   Event

	log        *typelog // of which left bytes are to come as Events of kind at
	kind       Kind
	left       int64
	at         time.Duration
	exit       *int
	ended      bool
	inputs     int   // that are in no log
	short      int64 // bytes that the logs lack
	torn       bool
	afterFacts bool
}

// typescriptFiles are where the parts of a typescript lie.
type typescriptFiles struct{ timing, out, in string }

// survey is what a timing file says as a whole.
type survey struct {
	facts   map[string]string
	out, in int64 // bytes
}

// surveyTiming reads a timing file once, for its facts and sums. Lines that are wrong are left to the second reading.
func surveyTiming(path string) (*survey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &survey{facts: make(map[string]string)}
	for l := newLines(f); ; {
		b, err := l.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, &Error{Path: path, Line: l.Line(), Err: err}
		}
		t, err := parseTiming(b)
		if err != nil {
			continue
		}
		switch t.stream {
		case 'O':
			s.out += t.n
		case 'I':
			s.in += t.n
		case 'H':
			if _, there := s.facts[t.name]; !there && len(s.facts) < 64 {
				s.facts[t.name] = t.rest
			}
		}
	}
}

// findTypescript says where the parts of the typescript are of which path is one.
func findTypescript(path string, timing bool, o *Options) (*typescriptFiles, error) {
	files := &typescriptFiles{timing: o.Timing, out: o.LogOut, in: o.LogIn}
	if o.LogIO != "" {
		files.out, files.in = o.LogIO, o.LogIO
	}
	switch {
	case timing:
		files.timing = path
	case files.out == "":
		files.out = path
	}
	if files.timing == "" {
		return nil, fmt.Errorf("%s is a typescript: its timing file is needed too (--timing FILE; script -T makes one)", path)
	}
	if files.out != "" && files.in != "" {
		return files, nil
	}
	s, err := surveyTiming(files.timing)
	if err != nil {
		return nil, err
	}
	if files.out == "" {
		files.out = beside(files.timing, s.facts["OUTPUT_LOG"])
	}
	if files.in == "" {
		files.in = beside(files.timing, s.facts["INPUT_LOG"])
	}
	if files.out == "" {
		return nil, fmt.Errorf("%s is a timing file: the typescript that it belongs to is needed too (--log-out FILE)", path)
	}
	if s.facts["INPUT_LOG"] != "" && s.facts["INPUT_LOG"] == s.facts["OUTPUT_LOG"] {
		files.in = files.out
	}
	return files, nil
}

// beside is a file of that name in the directory of path; "" where there is none. What stands in a file leads nowhere else.
func beside(path, name string) string {
	base := filepath.Base(filepath.FromSlash(name))
	if name == "" || base == "." || base == ".." || base == string(filepath.Separator) {
		return ""
	}
	found := filepath.Join(filepath.Dir(path), base)
	if st, err := os.Stat(found); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return found
}

func newTypescript(files *typescriptFiles) (*typescript, error) {
	s, err := surveyTiming(files.timing)
	if err != nil {
		return nil, err
	}
	t := &typescript{path: files.timing}
	if err := t.openLogs(files, s); err != nil {
		t.Close()
		return nil, err
	}
	if t.f, err = os.Open(files.timing); err != nil {
		t.Close()
		return nil, err
	}
	t.lines = newLines(t.f)
	facts := t.out.facts()
	for k, v := range s.facts {
		facts[k] = v
	}
	return t, t.setHeader(facts)
}

func (t *typescript) openLogs(files *typescriptFiles, s *survey) (err error) {
	if files.in == files.out {
		t.out, err = openTypelog(files.out, s.out+s.in)
		t.in = t.out
		return err
	}
	if t.out, err = openTypelog(files.out, s.out); err != nil || files.in == "" {
		return err
	}
	t.in, err = openTypelog(files.in, s.in)
	return err
}

func (t *typescript) setHeader(facts map[string]string) error {
	t.head = Header{
		Format: Typescript, Term: facts["TERM"], Command: facts["COMMAND"], Started: scriptTime(facts["START_TIME"]),
	}
	if sh := facts["SHELL"]; sh != "" {
		t.head.Env = map[string]string{"SHELL": sh}
	}
	rows, errRows := strconv.Atoi(facts["LINES"])
	cols, errCols := strconv.Atoi(facts["COLUMNS"])
	if errRows == nil && errCols == nil && checkSize(rows, cols) == nil {
		t.head.Rows, t.head.Cols = rows, cols
	}
	if secs, err := strconv.ParseFloat(facts["DURATION"], 64); err == nil {
		t.head.Duration = seconds(secs)
	}
	return nil
}

func (t *typescript) Header() *Header { return &t.head }

func (t *typescript) Files() []string {
	files := []string{t.path, t.out.path}
	if t.in != nil && t.in != t.out {
		files = append(files, t.in.path)
	}
	return files
}

func (t *typescript) Close() error {
	var errs []error
	if t.f != nil {
		errs = append(errs, t.f.Close())
	}
	if t.out != nil {
		errs = append(errs, t.out.f.Close())
	}
	if t.in != nil && t.in != t.out {
		errs = append(errs, t.in.f.Close())
	}
	return errors.Join(errs...)
}

func (t *typescript) Next() (*Event, error) {
	for {
		if e, err := t.piece(); e != nil || err != nil {
			return e, err
		}
		if t.ended {
			return nil, io.EOF
		}
		b, err := t.lines.next()
		if errors.Is(err, io.EOF) {
			t.ended = true
			if e := t.exitEvent(); e != nil {
				return e, nil
			}
			continue
		}
		if err != nil {
			return nil, t.errorf(err)
		}
		if e, err := t.line(b); e != nil || err != nil {
			return e, err
		}
	}
}

func (t *typescript) errorf(err error) error {
	return &Error{Path: t.path, Line: t.lines.Line(), Err: err}
}

// piece is the next part of what the last line counted; nil where that is over.
func (t *typescript) piece() (*Event, error) {
	if t.left == 0 {
		return nil, nil
	}
	b, err := t.log.take(t.left)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		t.short += t.left
		t.left = 0
		return nil, nil
	}
	t.left -= int64(len(b))
	t.event = Event{At: t.at, Kind: t.kind, Data: b}
	return &t.event, nil
}

// line takes a line of the timing; the event is nil where it is none, or one whose bytes are still to be read.
func (t *typescript) line(b []byte) (*Event, error) {
	if len(b) == 0 {
		return nil, nil
	}
	l, err := parseTiming(b)
	if err != nil {
		switch {
		case t.lines.Torn():
			t.torn = true
			return nil, nil
		case t.afterFacts:
			return nil, nil // a fact of several lines, such as a command
		}
		return nil, t.errorf(err)
	}
	t.afterFacts = l.stream == 'H'
	if t.at, err = t.time.step(l.delay); err != nil {
		return nil, t.errorf(err)
	}
	switch l.stream {
	case 'O':
		t.log, t.kind, t.left = t.out, Output, l.n
	case 'I':
		if t.in == nil {
			t.inputs++
			return nil, nil
		}
		t.log, t.kind, t.left = t.in, Input, l.n
	case 'S':
		return t.signal(l)
	case 'H':
		if n, err := strconv.Atoi(l.rest); l.name == "EXIT_CODE" && err == nil {
			t.exit = &n
		}
	}
	return nil, nil
}

// signal is a resize where the size was told.
func (t *typescript) signal(l timingLine) (*Event, error) {
	if l.name != "SIGWINCH" {
		t.event = Event{At: t.at, Kind: Signal, Data: []byte(l.name)}
		return &t.event, nil
	}
	rows, cols, err := winch(l.rest)
	if err != nil {
		return nil, t.errorf(err)
	}
	t.event = Event{At: t.at, Kind: Resize, Rows: rows, Cols: cols}
	return &t.event, nil
}

func (t *typescript) exitEvent() *Event {
	if t.exit == nil && t.out.exited {
		t.exit = &t.out.status
	}
	if t.exit == nil {
		return nil
	}
	t.event = Event{At: t.at, Kind: Exit, Code: *t.exit}
	return &t.event
}

func (t *typescript) Notes() []string {
	notes := t.time.notes()
	if t.inputs > 0 {
		notes = append(notes, fmt.Sprintf("%d inputs are in no log that was given (--log-in FILE): they are left out", t.inputs))
	}
	if t.short > 0 {
		notes = append(notes, fmt.Sprintf("the log ends %d bytes before the timing does", t.short))
	}
	if t.torn {
		notes = append(notes, fmt.Sprintf("line %d of the timing is cut off: the recording ends before it", t.lines.Line()))
	}
	if t.out.at < t.out.end && t.ended {
		notes = append(notes, fmt.Sprintf("%d bytes of %s are in no line of the timing: they are left out",
			t.out.end-t.out.at, strings.TrimSpace(filepath.Base(t.out.path))))
	}
	return notes
}
