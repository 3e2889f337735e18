package testbench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/golden"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// UpdateEnv is a variable of the environment that, set to 1, has Golden write its tapes.
const UpdateEnv = golden.UpdateEnv

// UpdateFlag gives a test binary the flag -update, unless it has one. Call it in the test package, since a flag that an import
// brought would clash with a package's own:
//
//	var _ = testbench.UpdateFlag()
//
// Golden looks for a flag of this name, whoever made it.
func UpdateFlag() *flag.Flag { return golden.Flag() }

// Golden ends the run and compares its tape with the one at path, record by record and byte by byte, and their script_path, argv and
// started_at; the version that wrote it does not count. Payloads that do not fit into a record lie beside it, in path with ".cas".
// Where they differ, or there is none, the test fails and tells how. With -update (see UpdateFlag) or UpdateEnv it writes the
// tape; one that says the same already is left as it is.
//
// A run on the real clock is never twice the same: see GoldenIn.
func Golden(t testing.TB, b *Bench, path string) {
	t.Helper()
	GoldenIn(t, b, path, fidelity.ByteIdentical)
}

// GoldenIn is Golden in another mode.
func GoldenIn(t testing.TB, b *Bench, path string, mode fidelity.Mode) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Errorf("%v", err)
		return
	}
	if t.Failed() && golden.Updating() {
		t.Logf("testbench: the test failed: golden tape %s is left as it is", path)
		return
	}
	held, err := b.HoldGolden(path, mode, golden.Updating())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("there is no golden tape %s; %s writes it", path, golden.How())
	case err != nil:
		t.Fatalf("golden tape: %v", err)
	case !held.Same():
		t.Errorf("the run's tape is not the golden one of %s; where the change is meant, %s writes it anew\n%s", path,
			golden.How(), held)
	}
}

// A GoldenResult is what HoldGolden found.
type GoldenResult struct {
	Written bool             // the golden tape is the run's now
	Headers []string         // in what the runs were begun differently, for people
	Report  *fidelity.Report // nil where there was no golden tape
}

// Same reports whether the run's tape is the golden one.
func (g *GoldenResult) Same() bool {
	return g.Written || g.Report.Faithful() && len(g.Headers) == 0
}

// String is what differs, for people.
func (g *GoldenResult) String() string {
	if g.Report == nil {
		return lines(g.Headers)
	}
	return lines(g.Headers) + text(g.Report)
}

// HoldGolden is GoldenIn without a test: it ends the run and holds its tape against the golden one at path, which it writes anew where
// update says so and they differ, or there is none. Without update a golden tape that is not there is fs.ErrNotExist.
func (b *Bench) HoldGolden(path string, mode fidelity.Mode, update bool) (*GoldenResult, error) {
	err := b.Close()
	if err != nil {
		return nil, err
	}
	var held GoldenResult
	held.Report, held.Headers, err = b.compare(path, mode, [2]string{"the golden tape", "this run"})
	if err != nil && !update {
		return nil, err
	}
	if err == nil && held.Same() || !update {
		return &held, nil
	}
	held.Written = true
	return &held, b.Save(path)
}

func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// text is a report for a person.
func text(r *fidelity.Report) string {
	var b strings.Builder
	_ = r.WriteText(&b, nil) // a Builder takes all
	return strings.TrimRight(b.String(), "\n")
}

// Compare ends the run and compares its tape with the one at path, the recorded one. What differs in the headers is in the report's
// notes.
func (b *Bench) Compare(path string, mode fidelity.Mode) (*fidelity.Report, error) {
	report, headers, err := b.compare(path, mode, [2]string{})
	if err != nil {
		return nil, err
	}
	report.Notes = append(report.Notes, headers...)
	return report, nil
}

func (b *Bench) compare(path string, mode fidelity.Mode, sides [2]string) (*fidelity.Report, []string, error) {
	if err := b.Close(); err != nil {
		return nil, nil, err
	}
	golden, err := readTape(path)
	if err != nil {
		return nil, nil, err
	}
	header, records, err := b.tape()
	if err != nil {
		return nil, nil, err
	}
	report, err := fidelity.CompareTapes(mode, each(golden.records), each(records), &fidelity.TapeOptions{
		Payload: payloadsOf(golden.store, b.out.store), Sides: sides,
	})
	if err != nil {
		return nil, nil, err
	}
	report.NotCompared = append(report.NotCompared, golden.lost()...)
	return report, headersDiffer(golden.header, header), nil
}

// headersDiffer lists, for people, in what two runs were begun differently.
func headersDiffer(was, now *tape.Header) []string {
	var out []string
	differ := func(key, was, now string) {
		if was != now {
			out = append(out, fmt.Sprintf("%s of the header: recorded %s, now %s", key, was, now))
		}
	}
	differ("script_path", orNull(was.ScriptPath), orNull(now.ScriptPath))
	differ("started_at_unix_ms", numberOrNull(was.StartedAtUnixMS), numberOrNull(now.StartedAtUnixMS))
	differ("argv", fmt.Sprintf("%q", was.Argv), fmt.Sprintf("%q", now.Argv))
	return out
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}

func numberOrNull(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// Records ends nothing and returns what the run has recorded so far. The error is that there is no tape, or that it is not kept.
func (b *Bench) Records() ([]*tape.Record, error) {
	_, records, err := b.tape()
	return slices.Clip(records), err
}

// Store holds the payloads of the run's tape that do not fit into a record; nil where there is no tape.
func (b *Bench) Store() cas.Store {
	if b.out == nil {
		return nil
	}
	return b.out.store
}

func (b *Bench) tape() (*tape.Header, []*tape.Record, error) {
	if b.out == nil {
		return nil, nil, errors.New("testbench: this run writes no tape; set Config.Keep, Config.Emit or Config.EmitTo")
	}
	return b.out.read()
}

// TapePath returns the path of the tape of a recording or of a tape itself: what a user calls either.
func TapePath(path string) string {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return filepath.Join(path, "run.tape")
	}
	return path
}

// replaced are the permissions of a file that takes the place of another.
var replaced = &durable.Options{Mode: 0o644}

// replace puts a file at path, or where a link there leads: whatever kills the run, the old one is there, or all of the new one.
func replace(path string, content []byte) error {
	target, err := regular.Target(path)
	if err != nil {
		return err
	}
	return durable.WriteFile(target, content, replaced)
}

// Save writes the run's tape to path and its payloads beside it, as Config.Emit does. A tape that stands there is replaced, whole: whatever
// kills the program, the old one is there or the new one, each with its payloads.
func (b *Bench) Save(path string) error {
	header, records, err := b.tape()
	if err != nil {
		return err
	}
	target, err := regular.Target(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	dir := path + tape.StoreSuffix
	blobs, err := cas.OpenDir(dir, nil)
	if err != nil {
		return err
	}
	f, err := durable.Create(filepath.Dir(target), replaced)
	if err != nil {
		return err
	}
	kept, err := saveRecords(f, header, records, b.out.store, blobs)
	if err != nil {
		f.Discard()
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := f.Commit(target); err != nil {
		return err
	}
	return removeBlobs(blobs, dir, kept)
}

// saveRecords writes a tape, each blob before the record that names it, and returns which blobs those are.
func saveRecords(to io.Writer, h *tape.Header, records []*tape.Record, from, blobs cas.Store) (map[cas.Digest]bool, error) {
	w, err := tape.NewWriter(to, h)
	if err != nil {
		return nil, err
	}
	kept := make(map[cas.Digest]bool)
	for _, rec := range records {
		if err := saveBlobs(rec, from, blobs, kept); err != nil {
			return nil, err
		}
		if err := w.Append(rec); err != nil {
			return nil, err
		}
	}
	return kept, w.Flush()
}

func saveBlobs(rec *tape.Record, from, to cas.Store, kept map[cas.Digest]bool) error {
	for _, p := range tape.Payloads(rec.Kind) {
		if p.Inline || kept[p.Hash] {
			continue
		}
		b, err := from.Get(p.Hash)
		if err != nil {
			return err
		}
		if _, err := to.Put(b); err != nil {
			return err
		}
		kept[p.Hash] = true
	}
	return nil
}
