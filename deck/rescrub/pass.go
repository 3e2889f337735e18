// Package rescrub takes secrets out of a recording that stand in it: what was written is passed through the write path again.
//
// A secret becomes known when a header, a parameter or the text around it gives it away. What was written before that still holds it: the
// work tree's contents, requests and answers, stdin, arguments. So the end of a run scrubs all of that again, for those values alone, and
// brings what holds one into the form that it would have if the value had been known from the beginning. What a person wants gone goes the
// same way (package redact). In this order, so that a recorder that is killed in between leaves a recording that loads:
//
//	tree.json          replaced whole, its new contents put into the store before
//	the rest of the tape
//	run.tape           replaced whole, its new blobs put into the store before
//	run.tape.part/     each part replaced whole
//	terminal/          its files replaced together: without a manifest meanwhile
//	workspace.diff, found-*.json, which are written now
//	blobs              those that nothing names any more are removed
//	recording.json     replaced whole, "finished"
//
// Until the last step the recording says that it is unfinished; what is left over by then goes with the next gc. What stands in this order
// and is no method of a Pass its caller does.
package rescrub

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Error says that secrets which became known late could not be taken out of what was written before.
type Error struct {
	Dir   string   // of the recording or of the replay's tape
	Holds []string // what was not looked through, or not replaced
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s may hold secrets that became known after they were written, in %s: %v (delete it, or do not share it)",
		e.Dir, strings.Join(e.Holds, ", "), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Written is what a Pass goes through, and what it looks for. Dir, Store, Made, Find, All, Files, Tree and Mask are needed.
type Written struct {
	Dir   string // of the recording or of a replay's tape
	Store *cas.Dir
	Made  cas.Store       // of contents of files: Store, or a files.Staging over it
	Find  *scrub.Scrubber // what is taken out, and nothing else: of Scrubber.Since
	All   *scrub.Scrubber // everything that is known
	// Files hides in all that is known of files, and returns how much changed.
	Files func(o *files.LateOptions) (changed int, err error)
	Tree  func() *files.Tree // what tree.json is to say then; nil for nothing

	TTY     *recording.TTY // of the program, whose record is that of seq Program; nil for a caller whose streams were masked as they came
	Program uint64

	Mask       *masks.Masker // of what is compared; its own, for it counts
	FollowsMCP bool
	Rec        *tape.Recorder // nil for a tape that has its end

	Sync     bool
	Progress func(items int, bytes int64, done bool) // nil for nobody
	Replaced func(rec *tape.Record)                  // is told of each record that held one; nil for nobody
}

// A Pass takes them out. A nil one has nothing to do: every method returns at once.
type Pass struct {
	Written
	Stdin *tape.Payload // of the last spawn, where it was replaced

	class    exchange.Classifier
	mcp      *mcp.Log
	search   *exchange.Search // of Find
	replaced bool             // a blob may be named no longer
	holds    []string         // what may hold a secret still
	files    int              // looked through: contents of files and records
	bytes    int64
}

// The parts of a recording that a rescrub goes through, as an error names them.
const (
	partTree     = "the work tree's files (" + recording.TreeName + " and the blobs)"
	partTape     = "the tape (" + recording.TapeName + " and the blobs)"
	partParts    = "answers that were not kept (" + recording.PartName + ")"
	partTerminal = "the terminal (" + recording.TerminalName + ")"
	partBlobs    = "blobs that nothing names"
	partManifest = "arguments and variables (" + recording.ManifestName + ")"
)

// New returns a Pass over what was written.
func New(w *Written) *Pass {
	l := &Pass{Written: *w, search: exchange.NewSearch(w.Store, w.Find), holds: Parts(), class: Classifier(w.Mask, w.FollowsMCP)}
	l.mcp = mcp.NewLog(w.Rec, w.Find, w.Mask, nil)
	l.tell(0, 0)
	return l
}

// Parts are the parts of a recording that a Pass goes through, as an Error names them.
func Parts() []string {
	return []string{partTree, partTape, partParts, partTerminal, partBlobs, partManifest}
}

// Classifier returns a new one of the kind that a run has whose masks are m: one that follows MCP or not.
func Classifier(m *masks.Masker, followsMCP bool) exchange.Classifier {
	class := llm.NewClassifier(m)
	if followsMCP {
		return mcp.NewClassifier(class, m)
	}
	return class
}

// step does what takes the secrets out of one part. After a failure the others are not begun.
func (l *Pass) step(part string, do func() error) error {
	if l == nil {
		return nil
	}
	if err := do(); err != nil {
		return &Error{Dir: l.Dir, Holds: slices.Clone(l.holds), Err: err}
	}
	l.holds = slices.DeleteFunc(l.holds, func(p string) bool { return p == part })
	return nil
}

// BeforeEnd hides them in what is known of files, from which the tape gets its last records.
func (l *Pass) BeforeEnd() error {
	return l.step(partTree, func() error {
		o := l.fileOptions()
		var items int
		var bytes int64
		o.Progress = func(n int, size int64) {
			items, bytes = n, size
			l.tell(items, bytes)
		}
		changed, err := l.Files(o)
		l.files, l.bytes = l.files+items, l.bytes+bytes
		if err != nil || changed == 0 {
			return err
		}
		l.replaced = true
		path := filepath.Join(l.Dir, recording.TreeName)
		tree := l.Tree()
		if tree == nil || !recording.Exists(path) { // a replay's is written at its end, where one is asked for
			return nil
		}
		return recording.WriteWith(path, tree.Encode, l.Sync)
	})
}

func (l *Pass) fileOptions() *files.LateOptions {
	return &files.LateOptions{Store: l.Made, Late: l.Find, All: l.All}
}

// AfterEnd hides them in the tape, which has its end, in the parts and in what the terminal showed.
func (l *Pass) AfterEnd() error {
	if err := l.step(partTape, l.tape); err != nil {
		return err
	}
	if err := l.step(partParts, l.parts); err != nil {
		return err
	}
	return l.step(partTerminal, l.terminal)
}

// terminal hides them in what the program's terminal showed and was given. It is masked where it stands, with as many bytes, and
// the whole is scanned again before it takes the place of what was there.
func (l *Pass) terminal() error {
	dir := filepath.Join(l.Dir, recording.TerminalName)
	if !recording.Exists(dir) {
		return nil
	}
	if _, err := cassette.Scrub(dir, &cassette.ScrubOptions{Scrub: l.Find, KeepEmail: true}); err != nil {
		return fmt.Errorf("%s: %w", recording.TerminalName, err)
	}
	return nil
}

// Sweep removes the blobs that nothing names any more.
func (l *Pass) Sweep() error {
	return l.step(partBlobs, func() error {
		if !l.replaced {
			return nil
		}
		left, err := library.Unnamed(l.Dir+"/.", l.Store) // with the dot, for it may be the link of a descriptor
		if err != nil {
			return err
		}
		var errs []error
		for d := range left {
			errs = append(errs, recording.Gone(os.Remove(l.Store.Path(d))))
		}
		return errors.Join(errs...)
	})
}

// tell tells how much has been looked through of what is counted by itself.
func (l *Pass) tell(items int, bytes int64) {
	if l.Progress != nil {
		l.Progress(l.files+items, l.bytes+bytes, false)
	}
}

// End takes the progress away.
func (l *Pass) End() {
	if l != nil && l.Progress != nil {
		l.Progress(l.files, l.bytes, true)
	}
}

// Noted has note give the manifest anew, where that knows more than Manifest.
func (l *Pass) Noted(note func()) error {
	return l.step(partManifest, func() error {
		note()
		return nil
	})
}

// Manifest takes them out of the manifest of a finished recording.
func (l *Pass) Manifest(m *recording.Manifest) {
	if l == nil {
		return
	}
	find := l.Find
	m.Argv, m.Env, m.ArgSecrets = slices.Clone(m.Argv), slices.Clone(m.Env), slices.Clone(m.ArgSecrets)
	for i, a := range m.Argv {
		m.Argv[i] = find.String(a)
	}
	for i, a := range m.ArgSecrets {
		m.ArgSecrets[i].Value = find.String(a.Value)
	}
	if m.Again != nil {
		again := *m.Again
		again.Upstreams = make(map[string]string, len(m.Again.Upstreams))
		for name, url := range m.Again.Upstreams {
			if find.String(url) != url {
				url = ""
			}
			again.Upstreams[name] = url
		}
		m.Again = &again
	}
	if m.TTY != nil {
		tty := *m.TTY
		tty.Keys, _ = find.Bytes(tty.Keys)
		m.TTY = &tty
	}
	for i := range m.Env {
		if v := find.Env([]string{m.Env[i].Name + "=" + m.Env[i].Value}); !m.Env[i].Secret && len(v) == 1 && v[0].Secret {
			m.Env[i] = recording.EnvVar{Name: v[0].Name, Value: v[0].Value, Secret: true, Shape: v[0].Shape}
		}
	}
}

// Marked is the list of a recording's secrets in which those that were taken out late say so: a replay's program may bring one as
// early as the recorded one did.
func (l *Pass) Marked(all []scrub.Secret) []scrub.Secret {
	if l == nil {
		return all
	}
	found := make(map[string]scrub.Secret)
	for _, s := range l.Find.Found() {
		found[scrub.Digits(s.Placeholder)] = s
	}
	out := slices.Clone(all)
	for i := range out {
		digits := scrub.Digits(out[i].Placeholder)
		_, is := found[digits]
		out[i].Late = out[i].Late || is
		delete(found, digits)
	}
	return recording.JoinSecrets(out, slices.SortedFunc(maps.Values(found), func(a, b scrub.Secret) int { return cmp.Compare(a.Placeholder, b.Placeholder) }))
}

// InPaths lists the paths of the recording that hold what is taken out, as in "the path of HOME". They stay: a recording needs them as they are.
func (l *Pass) InPaths(m *recording.Manifest) (out []string) {
	if l == nil {
		return nil
	}
	for _, p := range []struct{ what, path string }{
		{"the program", m.Program.Path}, {"its directory", m.Cwd}, {"the work tree", m.Roots.Tree}, {"HOME", m.Roots.Home}, {"TMP", m.Roots.Temp},
	} {
		if l.Find.String(p.path) != p.path {
			out = append(out, "the path of "+p.what)
		}
	}
	return out
}
