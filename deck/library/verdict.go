package library

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/version"
)

// verdictExt ends the name of the file that holds the verdict of the recording of its name. It stands beside recordings and pointers,
// never inside one: a seal covers what lies there. It is derived: who deletes it loses a column of the list.
const verdictExt = ".verdict"

// maxVerdict bounds such a file, in bytes.
const maxVerdict = 64 << 10

// A Verdict is how the last replay of a recording ended.
type Verdict struct {
	Status   string    `json:"status"`  // a word: faithful, diverged, …
	Summary  string    `json:"summary"` // a line
	By       string    `json:"by"`      // replay or test
	Tapedeck string    `json:"tapedeck"`
	At       time.Time `json:"at"`

	Of        string    `json:"recording"` // its id
	StartedAt time.Time `json:"started_at"`
}

// Judged keeps v as the last verdict of rec, in each library here that knows it: the one that it lies in, that of its work tree, that of
// the working directory. A library is never made for it. What cannot be written is let go: no replay fails for the list.
func Judged(rec *recording.Recording, v Verdict) {
	v.Of, v.StartedAt, v.Tapedeck = rec.Manifest.ID, rec.Manifest.StartedAt, version.Version
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	for path := range verdictsOf(rec) {
		_ = durable.WriteFile(path, append(b, '\n'), &durable.Options{Mode: 0o644})
	}
}

// verdictsOf are the files that hold the verdict of rec.
func verdictsOf(rec *recording.Recording) map[string]bool {
	out := make(map[string]bool)
	if lib := filepath.Dir(rec.Dir); filepath.Base(lib) == libraryName && filepath.Ext(rec.Dir) == recordingExt {
		out[strings.TrimSuffix(rec.Dir, recordingExt)+verdictExt] = true
	}
	libs := []*Library{Of(rec.Manifest.Roots.Tree)}
	if here, err := At(""); err == nil {
		libs = append(libs, here)
	}
	for _, l := range libs {
		if to, ok := l.pointed(rec.Manifest.ID + pointerExt); ok && recording.Resolved(to) == rec.Dir {
			out[filepath.Join(l.Dir, rec.Manifest.ID+verdictExt)] = true
		}
	}
	return out
}

// Verdict is how the last replay of e ended; nil where nobody has replayed it since it stands there.
func (l *Library) Verdict(e *Entry) *Verdict {
	if e.Recording == nil {
		return nil
	}
	b, err := recording.ReadBounded(filepath.Join(l.Dir, e.Name+verdictExt), maxVerdict)
	v := new(Verdict)
	m := e.Recording.Manifest
	if err != nil || json.Unmarshal(b, v) != nil || v.Of != m.ID || !v.StartedAt.Equal(m.StartedAt) {
		return nil // a newer recording may have taken its name
	}
	return v
}

// forget removes the verdict of what was called name.
func (l *Library) forget(name string) error {
	return recording.Gone(os.Remove(filepath.Join(l.Dir, name+verdictExt)))
}

// verdicts removes those of recordings that are gone.
func (c *collector) verdicts([]Entry) error {
	names, err := os.ReadDir(c.lib.Dir)
	errs := []error{recording.Gone(err)}
	for _, n := range names {
		name, ok := strings.CutSuffix(n.Name(), verdictExt)
		at := filepath.Join(c.lib.Dir, name)
		if !ok || c.removed[at+recordingExt] || recording.Exists(at+recordingExt) || recording.Exists(at+pointerExt) {
			continue
		}
		errs = append(errs, c.whole(GarbageVerdict, at+verdictExt))
	}
	return errors.Join(errs...)
}
