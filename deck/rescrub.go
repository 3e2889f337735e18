package deck

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
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A secret becomes known when a header, a parameter or the text around it gives it away. What was written before that still
// holds it: the work tree's contents, requests and answers, stdin, arguments. So the end of a run scrubs all of that again, for
// those values alone, and brings what holds one into the form that it would have if the value had been known from the
// beginning. In this order, so that a recorder that is killed in between leaves a recording that loads:
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
// Until the last step the recording says that it is unfinished; what is left over by then goes with the next gc.

// A RescrubError says that secrets which became known late could not be taken out of what was written before.
type RescrubError struct {
	Dir   string   // of the recording or of the replay's tape
	Holds []string // what was not looked through, or not replaced
	Err   error
}

func (e *RescrubError) Error() string {
	return fmt.Sprintf("%s may hold secrets that became known after they were written, in %s: %v (delete it, or do not share it)",
		e.Dir, strings.Join(e.Holds, ", "), e.Err)
}

func (e *RescrubError) Unwrap() error { return e.Err }

// A rescrub takes out of what one run has written what became known since it began. A nil one has nothing to do: every method
// returns at once.
type rescrub struct {
	s        *session
	changing *changing
	o        rescrubOptions
	find     *scrub.Scrubber // what became known late, and nothing else
	mask     *masks.Masker   // counts for itself: the run's masks were counted when it was recorded
	class    exchange.Classifier
	mcp      *mcp.Log

	search   *exchange.Search // of find
	stdin    *tape.Payload    // of the last spawn, where it was replaced
	replaced bool             // a blob may be named no longer
	holds    []string         // what may hold a secret still
	files    int              // looked through: contents of files and records
	bytes    int64
}

// rescrubOptions say how a rescrub works. Zero works.
type rescrubOptions struct {
	off      bool // of a replay whose recording was made by a tapedeck that did not do so: it would compare otherwise
	sync     bool
	progress func(items int, bytes int64, done bool) // nil for nobody
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

// newRescrub returns what takes out of s what became known since it began; nil where nothing did.
func newRescrub(s *session, c *changing, o rescrubOptions) (*rescrub, error) {
	find := s.scrub.Since(s.begun)
	if find == nil || o.off {
		return nil, nil
	}
	l := &rescrub{
		s: s, changing: c, o: o, find: find, search: exchange.NewSearch(s.store, find),
		holds: []string{partTree, partTape, partParts, partTerminal, partBlobs, partManifest},
	}
	var err error
	if l.mask, err = s.masking.Masker(s.redactor.roots); err != nil {
		return nil, l.failed(err)
	}
	l.class = classifier(l.mask, s.redactor.mcp != nil)
	l.mcp = mcp.NewLog(s.rec, find, l.mask, nil)
	l.tell(0, 0)
	return l, nil
}

// step does what takes the secrets out of one part. After a failure the others are not begun.
func (l *rescrub) step(part string, do func() error) error {
	if l == nil {
		return nil
	}
	if err := do(); err != nil {
		return l.failed(err)
	}
	l.holds = slices.DeleteFunc(l.holds, func(p string) bool { return p == part })
	return nil
}

func (l *rescrub) failed(err error) error {
	return &RescrubError{Dir: l.s.dir, Holds: slices.Clone(l.holds), Err: err}
}

// beforeEnd hides them in what is known of files, from which the tape gets its last records.
func (l *rescrub) beforeEnd() error {
	return l.step(partTree, func() error {
		o := l.fileOptions()
		var items int
		var bytes int64
		o.Progress = func(n int, size int64) {
			items, bytes = n, size
			l.tell(items, bytes)
		}
		changed, err := l.changing.hideLate(o)
		l.files, l.bytes = l.files+items, l.bytes+bytes
		if err != nil || changed == 0 {
			return err
		}
		l.replaced = true
		path := filepath.Join(l.s.dir, recording.TreeName)
		if l.changing.trees.before == nil || !recording.Exists(path) { // a replay's is written at its end, where one is asked for
			return nil
		}
		return writeWith(path, l.changing.trees.before.Encode, l.o.sync)
	})
}

func (l *rescrub) fileOptions() *files.LateOptions {
	return &files.LateOptions{Store: l.changing.trees.made, Late: l.find, All: l.s.scrub}
}

// afterEnd hides them in the tape, which has its end, in the parts and in what the terminal showed.
func (l *rescrub) afterEnd() error {
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
func (l *rescrub) terminal() error {
	dir := filepath.Join(l.s.dir, recording.TerminalName)
	if !recording.Exists(dir) {
		return nil
	}
	if _, err := cassette.Scrub(dir, &cassette.ScrubOptions{Scrub: l.find, KeepEmail: true}); err != nil {
		return fmt.Errorf("%s: %w", recording.TerminalName, err)
	}
	return nil
}

// sweep removes the blobs that nothing names any more.
func (l *rescrub) sweep() error {
	return l.step(partBlobs, func() error {
		if !l.replaced {
			return nil
		}
		left, err := library.Unnamed(l.s.dir+"/.", l.s.store) // with the dot, for it may be the link of a descriptor
		if err != nil {
			return err
		}
		var errs []error
		for d := range left {
			errs = append(errs, recording.Gone(os.Remove(l.s.store.Path(d))))
		}
		return errors.Join(errs...)
	})
}

// tell tells how much has been looked through of what is counted by itself.
func (l *rescrub) tell(items int, bytes int64) {
	if l.o.progress != nil {
		l.o.progress(l.files+items, l.bytes+bytes, false)
	}
}

// end takes the progress away.
func (l *rescrub) end() {
	if l != nil && l.o.progress != nil {
		l.o.progress(l.files, l.bytes, true)
	}
}

// rescrubManifest takes out of the manifest of a replay, which is the recording's, what became known in the replay.
func rescrubManifest(m *recording.Manifest, find *scrub.Scrubber) {
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

// marked is the list of a recording's secrets in which those that were taken out late say so: a replay's program may bring one as
// early as the recorded one did.
func (l *rescrub) marked(all []scrub.Secret) []scrub.Secret {
	if l == nil {
		return all
	}
	found := make(map[string]scrub.Secret)
	for _, s := range l.find.Found() {
		found[scrub.Digits(s.Placeholder)] = s
	}
	out := slices.Clone(all)
	for i := range out {
		digits := scrub.Digits(out[i].Placeholder)
		_, is := found[digits]
		out[i].Late = out[i].Late || is
		delete(found, digits)
	}
	return joinedSecrets(out, slices.SortedFunc(maps.Values(found), func(a, b scrub.Secret) int { return cmp.Compare(a.Placeholder, b.Placeholder) }))
}

// inPaths lists the paths of the recording that hold what became known late. They stay: a recording needs them as they are.
func (l *rescrub) inPaths(m *recording.Manifest) (out []string) {
	if l == nil {
		return nil
	}
	for _, p := range []struct{ what, path string }{
		{"the program", m.Program.Path}, {"its directory", m.Cwd}, {"the work tree", m.Roots.Tree}, {"HOME", m.Roots.Home}, {"TMP", m.Roots.Temp},
	} {
		if l.find.String(p.path) != p.path {
			out = append(out, "the path of "+p.what+" (a value that the run used as a secret stands in it)")
		}
	}
	return out
}
