package derive

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The session log tells the conversation of a program with a model, as it is derived from the tape.

// SessionLogName is the session log of a recording.
const SessionLogName = "session.jsonl"

// A SessionReader gives a session log as JSON lines, {"seq":0,"event":{…},"g":1,"t_ms":0} each.
type SessionReader struct {
	Path    string // of session.jsonl, or of the tape that it is derived from
	Derived bool   // it is derived while it is read

	r     io.ReadCloser
	notes []string
	done  chan struct{} // closed once the deriving has ended
}

// SessionLog opens the session log of a recording: its session.jsonl, or, where it has none (it is unfinished, or an older
// tapedeck made it), what its tape gives. Close must follow. An error of the tape comes with Read.
func SessionLog(rec *recording.Recording) (*SessionReader, error) {
	path := filepath.Join(rec.Dir, SessionLogName)
	if !rec.Finished() { // it may have been killed before the log was whole, or go on
		return DerivedLog(rec), nil
	}
	f, err := recording.OpenRegular(path)
	if err == nil {
		return &SessionReader{Path: path, r: f}, nil
	}
	if recording.Gone(err) != nil {
		return nil, err
	}
	return DerivedLog(rec), nil
}

// DerivedLog is SessionLog, of the tape whatever session.jsonl says.
func DerivedLog(rec *recording.Recording) *SessionReader { return deriving(SourceOf(rec)) }

// SourceOf is what the session log of rec is derived from.
func SourceOf(rec *recording.Recording) *Source {
	return &Source{Path: rec.TapePath(), ID: rec.Manifest.ID, exit: rec.Manifest.Exit, Open: !rec.Finished()}
}

// SessionLogOfTape is SessionLog for the bare tape at path.
func SessionLogOfTape(path string) (*SessionReader, error) {
	f, err := recording.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return deriving(&Source{Path: path, ID: tapeID(path)}), nil
}

// tapeID is what the runs of a bare tape are called by: its name without the ending.
func tapeID(path string) string {
	name := filepath.Base(path)
	if id := name[:len(name)-len(filepath.Ext(name))]; id != "" {
		return id
	}
	return name
}

// errStopped ends a deriving that nobody reads any more.
var errStopped = errors.New("nobody reads the session log any more")

// deriving starts the deriving of a session log. Its goroutine ends when Read gave its last, or with Close, which waits for it.
func deriving(src *Source) *SessionReader {
	pr, pw := io.Pipe()
	s := &SessionReader{Path: src.Path, Derived: true, r: pr, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		notes, err := src.Derive(func(line []byte) error {
			_, err := pw.Write(line)
			return err
		})
		s.notes = notes.list()
		pw.CloseWithError(err) // nil is the end
	}()
	return s
}

// Read implements io.Reader.
func (s *SessionReader) Read(b []byte) (int, error) { return s.r.Read(b) }

// Close ends the reading.
func (s *SessionReader) Close() error {
	if !s.Derived {
		return s.r.Close()
	}
	s.r.(*io.PipeReader).CloseWithError(errStopped) // which it never refuses
	<-s.done
	return nil
}

// Notes says what of the tape could not be read, or stands for less than it seems. It waits for the end of a deriving, so it is
// for who has read everything or has called Close.
func (s *SessionReader) Notes() []string {
	if s.Derived {
		<-s.done
	}
	return s.notes
}

// A place is a record of the tape.
type place struct {
	seq uint64
	g   uint64
	ms  int64
}

func placeOf(rec *tape.Record) place { return place{rec.Seq, rec.G, rec.MonotonicMS} }

func (p place) String() string { return fmt.Sprintf("record %d", p.seq) }
