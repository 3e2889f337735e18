package cassette

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// ScrubOptions say what Scrub masks. Nil and zero work.
type ScrubOptions struct {
	To        string          // a directory that is made; "": in place
	Scrub     *scrub.Scrubber // nil: shapes of secrets alone
	Accounts  []string
	KeepEmail bool
	Preserve  []string // for the report: what is kept on purpose
}

// ErrNotClean is wrapped by Scrub's error where secrets are left after masking. Nothing was changed.
var ErrNotClean = errors.New("secrets are left after masking")

// MaxInput is how many bytes of input Scrub looks at; a cassette with more is refused.
const MaxInput = 64 << 20

// Scrub masks the secrets in a finished cassette, whoever made it, with as many bytes and columns as they have, writes what
// follows from that anew, and proves it: what it made is scanned once more before it is put in place. What is not known here
// stays, in its order. It returns the new report, which has what the old one had too.
//
// In place, every new file is made beside the old one first. A process that dies while they change places leaves an unfinished
// cassette, and what is not yet in place in a directory .tmp-scrub-* in it.
func Scrub(dir string, opts *ScrubOptions) (*ScrubReport, error) {
	o := ScrubOptions{}
	if opts != nil {
		o = *opts
	}
	r, err := Open(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	to, err := scrubTo(dir, o.To)
	if err != nil {
		return nil, err
	}
	report, err := scrubInto(r, to, &o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(to))
	}
	if o.To != "" {
		return report, nil
	}
	r.Close() // Windows renames over no open file
	return report, settle(to, dir)
}

// scrubTo makes the directory that the new files come into.
func scrubTo(dir, to string) (string, error) {
	if to == "" {
		return os.MkdirTemp(dir, durable.TempPrefix+"scrub-*")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	return to, os.Mkdir(to, 0o700)
}

// scrubInto makes the masked cassette in a directory.
func scrubInto(r *Reader, to string, o *ScrubOptions) (*ScrubReport, error) {
	t := r.manifest.Terminal
	so := &tty.Options{Scrub: o.Scrub, Accounts: o.Accounts, KeepEmail: o.KeepEmail, Rows: t.InitialRows, Cols: t.InitialCols}
	texts := newTexts(so)
	m := &remake{from: r.dir, to: to, size: Size{t.InitialRows, t.InitialCols}, text: texts.mask}
	for range maxRescans {
		var err error
		if m.hits, m.keys, err = findIn(m.from, so); err != nil {
			return nil, err
		}
		if m.from == to && len(m.hits)+len(m.keys) == 0 {
			break
		}
		if err := m.all(texts); err != nil {
			return nil, err
		}
		texts.report.Count(m.hits)
		texts.report.Count(m.keys)
		m.from = to
	}
	report := mergeReports(r.report, newReport(&texts.report, so.RuleNames(), nil, o.Preserve))
	if err := writeJSON(filepath.Join(to, ScrubReportFile), report, false); err != nil {
		return nil, err
	}
	return report, prove(to, so)
}

// findIn returns the secrets in the output and in the input of a cassette.
func findIn(dir string, so *tty.Options) (hits, keys []tty.Hit, err error) {
	m := &remake{from: dir}
	resizes, err := m.resizes()
	if err != nil {
		return nil, nil, err
	}
	var sizes []tty.Resize
	for _, s := range resizes {
		sizes = append(sizes, tty.Resize{Offset: s.offset, Rows: s.size.Rows, Cols: s.size.Cols})
	}
	typed, err := typed(dir)
	if err != nil {
		return nil, nil, err
	}
	raw, err := os.Open(filepath.Join(dir, OutputFile))
	if err != nil {
		return nil, nil, err
	}
	defer raw.Close()
	st, err := raw.Stat()
	if err != nil {
		return nil, nil, err
	}
	keys = tty.ScanInput(typed, so) // first: what is typed without echo is a secret in the output too
	if hits, err = tty.Scan(raw, st.Size(), sizes, so); err != nil {
		return nil, nil, err
	}
	sortHits(hits)
	sortHits(keys)
	return hits, keys, nil
}

// typed returns the bytes of all input.
func typed(dir string) ([]byte, error) {
	r := &Reader{dir: dir, state: StateFinished}
	var all []byte
	for e, err := range r.Events(&EventsOptions{Streams: []Stream{StreamInput}}) {
		if err != nil {
			return nil, err
		}
		if all = append(all, e.Input.Bytes...); len(all) > MaxInput {
			return nil, refuse(InputFile, 0, ErrTooLong, "at most %d bytes of input are scrubbed", MaxInput)
		}
	}
	return all, nil
}

// all makes every file but the report. The manifest is made last.
func (m *remake) all(t *texts) error {
	if err := errors.Join(m.frames(), m.input(), m.service()); err != nil {
		return err
	}
	digest, err := m.output()
	if err != nil {
		return err
	}
	if err := m.chunks(); err != nil {
		return err
	}
	for _, name := range []string{FinalFile, QuotaFile, DiscoveryFile} {
		if err := m.file(name, func(b []byte) ([]byte, error) { return mapStrings(b, t.mask) }); err != nil {
			return err
		}
	}
	return m.file(ManifestFile, func(b []byte) ([]byte, error) { return editManifest(b, fmt.Sprintf("%x", digest), t) })
}

// editManifest puts the digest in, and masks how the program was started.
func editManifest(b []byte, digest string, t *texts) ([]byte, error) {
	b, err := edit(b, "content_digest", func(v []byte) ([]byte, error) { return set(v, "sha256", digest) })
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"harness", "command", "optional"} {
		if b, err = edit(b, key, func(v []byte) ([]byte, error) { return mapStrings(v, t.mask) }); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// file makes a whole file anew; one that is not there is not made.
func (m *remake) file(name string, f func([]byte) ([]byte, error)) error {
	b, err := readSmall(filepath.Join(m.from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if b, err = f(b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return durable.WriteFile(filepath.Join(m.to, name), b, nil)
}

// prove scans what was made, and opens it.
func prove(dir string, so *tty.Options) error {
	hits, keys, err := findIn(dir, so)
	if err != nil {
		return err
	}
	if len(hits)+len(keys) > 0 {
		var left tty.Report
		left.Count(hits)
		left.Count(keys)
		return fmt.Errorf("%w: %v", ErrNotClean, left.Hits)
	}
	r, err := Open(dir, nil)
	if err != nil {
		return err
	}
	return r.Close()
}

// mergeReports returns what two runs did one after another.
func mergeReports(a, b *ScrubReport) *ScrubReport {
	all := tty.Report{Late: a.LateHits}
	for rule, n := range a.HitCounts {
		all.Add(tty.Report{Hits: map[string]int{rule: n}})
	}
	all.Add(tty.Report{Hits: b.HitCounts})
	preserved := slices.Concat(a.IntentionallyPreserved, b.IntentionallyPreserved)
	slices.Sort(preserved)
	return newReport(&all, slices.Concat(a.Rules, b.Rules), a.EnvAllowlist, slices.Compact(preserved))
}

// settle puts the files of from in the place of those in dir, and removes from. The manifest is away while they change.
func settle(from, dir string) error {
	if err := os.Rename(filepath.Join(dir, ManifestFile), filepath.Join(dir, startFile)); err != nil {
		return err
	}
	for _, name := range slices.Concat(allFiles[1:], allFiles[:1]) {
		err := os.Rename(filepath.Join(from, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(removeStart(dir), os.Remove(from))
}
