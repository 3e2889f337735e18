package derive

import (
	"bufio"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// SessionRules is the version of the rules by which a session log is derived from a tape. It grows whenever the same tape gives
// another log than before.
const SessionRules = 1

// WriteOptions say how the session log of a recording is written. Hide and Log are needed.
type WriteOptions struct {
	Hide  func(line []byte) (hidden []byte, found bool) // takes secrets out
	Log   *slog.Logger
	Sync  bool
	Heard func(sessionlog.Event) error // is told of each event; nil for nobody
}

// WriteLog leaves session.jsonl in dir beside its tape, or nothing where no model said anything, and says so in m, whose
// id and exit stand. It fails for what is written to the disk alone: what of the tape cannot be read is left out, and said in the
// ledger of m.
//
// The tape is scrubbed by now. But a secret that a model spelled in pieces, one an event, stands in one piece in the log: so
// that is scrubbed once more, and the manifest says which of its lines are not what the tape gives.
func WriteLog(dir string, m *recording.Manifest, o *WriteOptions) error {
	m.SessionRules, m.SessionHidden = 0, nil
	src := &Source{Path: filepath.Join(dir, recording.TapeName), ID: m.ID, exit: m.Exit, Heard: o.Heard}
	w := &logFile{dir: dir, options: durable.Options{Mode: 0o644, Sync: o.Sync}, hide: o.Hide}
	notes, err := src.Derive(w.line)
	if err = w.end(err); err != nil && w.failed {
		return err
	}
	if err != nil {
		o.Log.Warn("there is no session log: the tape cannot be read to its end", "err", err)
		return nil
	}
	if lost := notes.lost(); len(lost) > 0 {
		a := m.Axes["llm"]
		a.NotCovered = append(slices.Clip(a.NotCovered), lost...)
		m.Axes["llm"] = a
	}
	if w.f != nil {
		m.SessionRules, m.SessionHidden = SessionRules, w.hidden
	}
	return nil
}

// A logFile is session.jsonl while it is written. The file is made with its first line.
type logFile struct {
	dir     string
	options durable.Options
	f       *durable.File
	buf     *bufio.Writer
	hide    func(line []byte) (hidden []byte, found bool)
	n       int
	hidden  []int // the lines in which something was hidden, from 1
	failed  bool  // to be written
}

func (t *logFile) line(b []byte) (err error) {
	if t.f == nil {
		if t.f, err = durable.Create(t.dir, &t.options); err != nil {
			t.failed = true
			return err
		}
		t.buf = bufio.NewWriterSize(t.f, 256<<10)
	}
	t.n++
	hidden, found := t.hide(b)
	if found {
		t.hidden = append(t.hidden, t.n)
	}
	_, err = t.buf.Write(hidden)
	t.failed = t.failed || err != nil
	return err
}

// end puts the file in its place, unless something failed.
func (t *logFile) end(err error) error {
	if t.f == nil {
		return err
	}
	if err == nil {
		if err = t.buf.Flush(); err != nil {
			t.failed = true
		}
	}
	if err != nil {
		t.f.Discard()
		return err
	}
	err = t.f.Commit(filepath.Join(t.dir, SessionLogName))
	t.failed = err != nil
	return err
}
