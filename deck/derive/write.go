package derive

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
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
	var lost []string
	var taped, written error // of what the log is derived from, and of the log itself
	var altered []int        // the lines in which something was hidden, from 1
	n := 0
	err := recording.WriteWith(filepath.Join(dir, SessionLogName), func(w io.Writer) error {
		var notes *notes
		notes, taped = src.Derive(func(line []byte) error {
			n++
			hidden, found := o.Hide(line)
			if found {
				altered = append(altered, n)
			}
			_, written = w.Write(hidden)
			return written
		})
		if lost = notes.lost(); taped == nil && n == 0 {
			return errNoLog
		}
		return taped
	}, o.Sync)
	switch {
	case taped != nil && written == nil:
		o.Log.Warn("there is no session log: the tape cannot be read to its end", "err", taped)
		return nil
	case err != nil && !errors.Is(err, errNoLog):
		return err
	case err == nil:
		m.SessionRules, m.SessionHidden = SessionRules, altered
	}
	if len(lost) > 0 {
		a := m.Axes["llm"]
		a.NotCovered = append(slices.Clip(a.NotCovered), lost...)
		m.Axes["llm"] = a
	}
	return nil
}

// errNoLog keeps a session log from being written in which nothing would stand.
var errNoLog = errors.New("no model said anything")
