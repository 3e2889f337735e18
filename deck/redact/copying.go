package redact

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A copying makes the new recording.
type copying struct {
	o      *Options
	from   *recording.Recording
	find   *scrub.Scrubber
	values values
	result *Result

	to    *recording.Recording
	store *cas.Dir
	trees []*files.Tree // of the new one: what the run found
	paths []string      // of the files that hold them
	pass  *rescrub.Pass
}

// make makes it in the directory made, which is not there.
func (c *copying) make(ctx context.Context, made string) error {
	m, err := c.newManifest()
	if err != nil {
		return err
	}
	c.to = &recording.Recording{Dir: made, Manifest: m}
	if err := c.copyFiles(); err != nil {
		return err
	}
	if err := m.Write(made, false); err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return err
	}
	defer c.pass.End()
	if paths := c.pass.InPaths(m); len(paths) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(paths, ", "), errPaths)
	}
	for _, step := range []func() error{c.pass.BeforeEnd, c.writeTrees, c.pass.AfterEnd, c.patch, c.annotations, c.manifest, c.pass.Sweep} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return fmt.Errorf("%w (%w)", err, errBroken)
		}
	}
	c.countTerminal()
	return c.finish(ctx, c.to)
}

// copyFiles takes along what is passed through; what follows from it is made anew.
func (c *copying) copyFiles() error {
	names := []string{recording.TapeName, recording.TapeName + tape.StoreSuffix, recording.PartName, recording.TreeName, recording.TerminalName}
	for _, f := range c.from.Manifest.Roots.Followed(c.from.Manifest.Writable) {
		names = append(names, f.Name)
	}
	if err := os.Mkdir(c.to.Dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		from, to := filepath.Join(c.from.Dir, name), filepath.Join(c.to.Dir, name)
		var err error
		if recording.IsDir(from) {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			err = recording.Gone(copyFile(to, from))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return recording.WriteWith(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	}, false)
}

// load opens the copy for the pass.
func (c *copying) load() (err error) {
	m := c.to.Manifest
	if c.store, err = c.to.Store(); err != nil {
		return err
	}
	paths := []string{filepath.Join(c.to.Dir, recording.TreeName)}
	for _, f := range m.Roots.Followed(m.Writable) {
		paths = append(paths, filepath.Join(c.to.Dir, f.Name))
	}
	for _, path := range paths {
		t, err := recording.ReadTree(path)
		if err != nil {
			return err
		}
		if t != nil {
			c.trees, c.paths = append(c.trees, t), append(c.paths, path)
		}
	}
	masking := m.Masking
	if masking == nil {
		masking = new(recording.Masking)
	}
	mask, err := masking.Masker(&m.Roots)
	if err != nil {
		return err
	}
	c.pass = rescrub.New(&rescrub.Written{
		Dir: c.to.Dir, Store: c.store, Made: c.store, Find: c.find, All: c.find, Mask: mask, FollowsMCP: m.FollowsMCP(),
		Files: c.hideFiles, Tree: func() *files.Tree { return nil }, // writeTrees writes it with the others
		TTY: m.TTY, Program: uint64(max(m.Records-1, 0)), // the program's record is the last
		Replaced: func(rec *tape.Record) { c.count(rec.Kind.Name()) },
	})
	return nil
}

// hideFiles takes the values out of all trees.
func (c *copying) hideFiles(o *files.LateOptions) (changed int, err error) {
	var before [][]files.Entry
	for _, t := range c.trees {
		before = append(before, slices.Clone(t.Entries))
	}
	changed, err = files.HideLate(o, c.trees...)
	for i, t := range c.trees {
		for _, was := range before[i] {
			if is, ok := t.Lookup(was.Path); !ok || is.Digest != was.Digest {
				c.count("file")
			}
		}
	}
	return changed, err
}

func (c *copying) writeTrees() error {
	for i, t := range c.trees {
		if err := recording.WriteWith(c.paths[i], t.Encode, false); err != nil {
			return err
		}
	}
	return nil
}

// patch makes workspace.diff of what the tree and the tape say now.
func (c *copying) patch() error {
	if !c.from.Manifest.HoldsTree() || !recording.Exists(c.from.DiffPath()) {
		return nil
	}
	before, err := c.to.Tree()
	if before == nil || err != nil {
		return err
	}
	return recording.WriteWith(c.to.DiffPath(), func(w io.Writer) error { return derive.WritePatch(w, c.to, before) }, false)
}

// annotations takes the values out of people's notes, which are of the new tape then.
func (c *copying) annotations() error {
	notes, err := annotations.Open(c.from.TapePath())
	if notes == nil || err != nil {
		return err
	}
	of, err := notes.Of(c.from.TapePath())
	if err != nil {
		return err
	}
	b, err := os.ReadFile(c.from.TapePath() + annotations.Suffix)
	if err != nil {
		return err
	}
	digest := notes.Header.TapeContentHash
	if of {
		whole, err := os.ReadFile(c.to.TapePath())
		if err != nil {
			return err
		}
		digest = cas.Sum(whole)
	}
	return recording.WriteWith(c.to.TapePath()+annotations.Suffix, func(w io.Writer) error {
		for line := range bytes.Lines(b) {
			hidden, found := c.find.Bytes(line)
			if found {
				c.count("annotation")
			}
			hidden = bytes.ReplaceAll(hidden, []byte(notes.Header.TapeContentHash.String()), []byte(digest.String()))
			if _, err := w.Write(hidden); err != nil {
				return err
			}
		}
		return nil
	}, false)
}

// manifest takes the values out of recording.json, after what is said there of the session log, which is derived anew.
func (c *copying) manifest() error {
	m := c.to.Manifest
	c.pass.Manifest(m)
	m.State = recording.StateFinished
	if c.pass.Stdin != nil {
		m.Stdin = c.pass.Stdin.AppendJSON(nil)
	}
	m.Secrets = slices.DeleteFunc(c.pass.Marked(m.Secrets), c.unsearchable())
	for key, b := range m.Raw {
		m.Raw[key], _ = c.find.Bytes(b)
	}
	if err := c.sessionLog(); err != nil {
		return err
	}
	c.countManifest()
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	hidden, found := c.find.Bytes(b)
	if !found {
		return m.Write(c.to.Dir, false)
	}
	clean := new(recording.Manifest)
	if err := json.Unmarshal(hidden, clean); err != nil {
		return fmt.Errorf("%w (%w)", &LeftError{[]string{recording.ManifestName}}, err)
	}
	*m = *clean
	return m.Write(c.to.Dir, false)
}

// unsearchable tells of the secrets of a replay those that are no good there: what is made up for a short value, or for a word, is not
// recognised in what the program sends. The program gets the placeholder itself then.
func (c *copying) unsearchable() func(scrub.Secret) bool {
	short := make(map[string]bool)
	for value := range c.values {
		if !names.Searchable(value) {
			short[scrub.Digits(c.find.String(value))] = true
		}
	}
	return func(s scrub.Secret) bool { return short[scrub.Digits(s.Placeholder)] }
}

// sessionLog derives session.jsonl from the new tape. A line in which the recorder hid a secret that the tape has in pieces stays as it is
// but for the values and the recording's id.
func (c *copying) sessionLog() error {
	m, old := c.to.Manifest, c.from.Manifest
	kept, err := c.hiddenLines()
	if err != nil {
		return err
	}
	n := 0
	hide := func(line []byte) ([]byte, bool) {
		n++
		hidden, found := c.find.Bytes(line)
		if was, ok := kept[n]; ok {
			hidden, _ = c.find.Bytes(bytes.ReplaceAll(was, []byte(old.ID), []byte(m.ID)))
			found = true
		}
		return hidden, found
	}
	err = derive.WriteLog(c.to.Dir, m, &derive.WriteOptions{Hide: hide, Log: slog.New(slog.DiscardHandler)})
	if a, ok := m.Axes["llm"]; ok {
		a.NotCovered = recording.NoneTwice(a.NotCovered)
		m.Axes["llm"] = a
	}
	return err
}

// hiddenLines are the lines of the old session log that its manifest names.
func (c *copying) hiddenLines() (map[int][]byte, error) {
	kept := make(map[int][]byte)
	if len(c.from.Manifest.SessionHidden) == 0 {
		return kept, nil
	}
	f, err := os.Open(filepath.Join(c.from.Dir, derive.SessionLogName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if slices.Contains(c.from.Manifest.SessionHidden, n) {
			kept[n] = line
		}
		if err != nil {
			return kept, recording.NotEOF(err)
		}
	}
}

// count adds one to a place.
func (c *copying) count(what string) {
	places := &c.result.Places
	i := slices.IndexFunc(*places, func(p Place) bool { return p.What == what })
	if i < 0 {
		i = len(*places)
		*places = append(*places, Place{What: what})
	}
	(*places)[i].Count++
}

// countManifest counts arguments and variables.
func (c *copying) countManifest() {
	was, is := c.from.Manifest, c.to.Manifest
	for i, a := range was.Argv {
		if i < len(is.Argv) && is.Argv[i] != a {
			c.count("argument")
		}
	}
	for i, v := range was.Env {
		if i < len(is.Env) && is.Env[i].Value != v.Value {
			c.count("variable")
		}
	}
}

// countTerminal counts the files of the cassette that differ now.
func (c *copying) countTerminal() {
	all, _ := filepath.Glob(filepath.Join(c.from.TerminalPath(), "*"))
	for _, path := range all {
		was, err := os.ReadFile(path)
		is, err2 := os.ReadFile(filepath.Join(c.to.TerminalPath(), filepath.Base(path)))
		if err == nil && err2 == nil && filepath.Ext(path) != ".json" && !bytes.Equal(was, is) {
			c.count("terminal file")
		}
	}
}
