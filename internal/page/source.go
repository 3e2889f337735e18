package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cassette/picture"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// A Source gives the documents of one recording. It may be used by several goroutines at once.
type Source struct {
	*taped

	ID    string // of its paths
	turns turns
	files listings

	whole   bool // a seal is checked however much there is to read
	sealing sync.Mutex
	sealed  *Seal // guarded by sealing; nil where nobody has looked
}

// ErrNoDocument is returned for a path at which no document is.
var ErrNoDocument = errors.New("no such document")

// Open returns the documents of a recording. nil prices are those that are built in.
func Open(rec *recording.Recording, prices *llm.Prices) (*Source, error) {
	store, err := rec.Store()
	if errors.Is(err, fs.ErrNotExist) {
		store, err = nil, nil
	}
	t := &taped{rec: rec, prices: prices, store: store}
	return &Source{taped: t, ID: idOf(rec.Manifest.ID), turns: turns{taped: t}, files: listings{taped: t}}, err
}

var plainID = lazyregexp.New(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`)

// idOf makes a path element of the id of a recording, which somebody may have written.
func idOf(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	sum := cas.Sum([]byte(id))
	return "x" + hex.EncodeToString(sum[:8])
}

// Document returns the document at a path below run/ID/.
func (r *Source) Document(ctx context.Context, path string) ([]byte, error) {
	b, err := r.document(ctx, path)
	switch {
	case err == nil:
		return b, nil
	case !recording.IsDir(r.rec.Dir):
		return nil, errRemoved
	}
	return nil, &within{r.rec.Dir, err}
}

// A within is an error about a recording that does not tell where that lies.
type within struct {
	dir string
	error
}

// Error implements error.
func (e *within) Error() string {
	return strings.ReplaceAll(e.error.Error(), e.dir+string(filepath.Separator), "")
}

// Unwrap gives the error as it came.
func (e *within) Unwrap() error { return e.error }

// errRemoved is returned for any document of a recording that is no longer there.
var errRemoved = fmt.Errorf("%w: the recording has been removed", ErrNoDocument)

func (r *Source) document(ctx context.Context, path string) ([]byte, error) {
	kind, rest, _ := strings.Cut(path, "/")
	number, isJSON := strings.CutSuffix(rest, ".json")
	switch {
	case path == "run.json":
		return jsonscan.MustMarshal(r.detail(ctx)), nil
	case path == "index.json":
		s, err := r.sum()
		if err != nil {
			return nil, err
		}
		return unpacked(s.index)
	case path == "files.json":
		return documentOf(r.files.list())
	case path == "terminal.json":
		return documentOf(terminalOf(r.rec))
	case path == "report.json":
		return documentOf(r.report())
	case kind == "payload":
		return r.payload(rest)
	case kind == "files" && isJSON:
		if n, err := strconv.Atoi(number); err == nil {
			return documentOf(r.files.block(n))
		}
	case kind == "records" && isJSON:
		if n, err := strconv.Atoi(number); err == nil {
			return documentOf(r.records(n))
		}
	case kind == "turn" && isJSON:
		if seq, err := strconv.ParseUint(number, 10, 64); err == nil {
			return documentOf(r.turns.document(seq))
		}
	}
	return nil, ErrNoDocument
}

func documentOf[T any](v *T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return jsonscan.MustMarshal(v), nil
}

// payload returns the bytes of a blob, or those that inRecord has. Behind a digest may stand a dot and how the bytes are encoded: then they
// are decoded.
func (r *Source) payload(name string) ([]byte, error) {
	if standsInRecord(name) {
		return r.inRecord(name)
	}
	digest, encoding, _ := strings.Cut(name, ".")
	d, err := cas.Parse(digest)
	if err != nil || r.store == nil {
		return nil, ErrNoDocument
	}
	b, err := r.store.Get(d)
	var missing *cas.MissingError
	switch {
	case errors.As(err, &missing):
		return nil, fmt.Errorf("%w: %w", ErrNoDocument, err)
	case err != nil || encoding == "":
		return b, err
	}
	return exchange.DecodeCut(encoding, b, llm.MaxSaid, true)
}

// row is the run in a list, by its recording.json alone.
func rowOf(id string, rec *recording.Recording, totals *recording.Totals, v *library.Verdict) Run {
	m := rec.Manifest
	out := Run{
		ID: id, Name: nameOf(rec), State: stateOf(rec), Started: m.StartedAt.UnixMilli(), Argv: append([]string{}, m.Argv...), Exit: m.Exit, Records: m.Records,
		Totals: totals, Parent: m.Parent, ForkSeq: m.ForkSeq, Sealed: m.Sealed,
	}
	if m.Parent != nil {
		parent := idOf(*m.Parent)
		out.Parent = &parent
	}
	if v != nil {
		out.Verdict = &Verdict{Status: v.Status, Summary: v.Summary, At: v.At.UnixMilli()}
	}
	return out
}

// nameOf is what people call a recording: its directory, or its id where that says no more.
func nameOf(rec *recording.Recording) string {
	switch base := filepath.Base(rec.Dir); base {
	case rec.Manifest.ID + ".rec", library.UnpackedName:
		return rec.Manifest.ID
	default:
		return base
	}
}

func stateOf(rec *recording.Recording) string {
	switch {
	case rec.Finished():
		return "finished"
	case rec.Live() == recording.LiveYes:
		return "recording"
	}
	return "interrupted"
}

// detail makes run.json. A tape that cannot be opened is a problem of the run, not of its page.
func (r *Source) detail(ctx context.Context) *Detail {
	m := r.rec.Manifest
	d := &Detail{
		Run: rowOf(r.ID, r.rec, m.Totals, library.VerdictOf(r.rec)), Cwd: m.Cwd, Host: hostOf(&m.Host), Masks: m.Masks,
		Versions: map[string]string{"tapedeck": m.Versions.Tapedeck, "program": m.Versions.Program}, Fork: m.Fork,
		Coverage: coverageOf(m), Upstreams: upstreamsOf(m), Conversations: []Conversation{}, Notes: []Note{}, Problems: []Problem{},
		Terminal: recording.IsDir(r.rec.TerminalPath()), Report: library.JudgementOf(r.rec) != nil,
	}
	for _, what := range r.rec.Unfinished() {
		d.Problems = append(d.Problems, Problem{recording.ManifestName, strings.TrimPrefix(what, r.rec.Dir+" is unfinished: ")})
	}
	var size int64
	s, err := r.sum()
	if err != nil {
		d.Problems = append(d.Problems, Problem{recording.TapeName, (&within{r.rec.Dir, err}).Error()})
	} else {
		size = s.Tape + s.Payloads
		d.Conversations, d.Files, d.Refused = s.Conversations, s.Files, s.Refused
		d.Problems = append(d.Problems, s.Problems...)
		d.Records = s.Rows
	}
	if d.Masks == nil {
		d.Masks = map[string]int{}
	}
	if d.Seal = r.seal(ctx, size); d.Seal != nil && d.Seal.broken {
		d.Problems = append(d.Problems, Problem{seal.FileName, "the seal is broken: " + d.Seal.Checked})
	}
	d.Notes, d.Problems = r.notes(d.Problems)
	return d
}

func hostOf(h *recording.Host) string {
	return strings.TrimSpace(strings.Join([]string{h.OS, h.Arch, h.Kernel, h.Name}, " "))
}

func coverageOf(m *recording.Manifest) []Coverage {
	out := []Coverage{}
	for _, name := range slices.Sorted(maps.Keys(m.Axes)) {
		a, how := m.Axes[name], "off"
		if a.On {
			how = "recorded"
		}
		out = append(out, Coverage{Axis: name, How: how, Gaps: append([]string{}, a.NotCovered...)})
	}
	return out
}

func upstreamsOf(m *recording.Manifest) []string {
	out := []string{}
	if m.Again == nil {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(m.Again.Upstreams)) {
		out = append(out, name+"="+cmp.Or(m.Again.Upstreams[name], "(held a secret)"))
	}
	return out
}

// notes are what people noted beside the tape.
func (r *Source) notes(problems []Problem) ([]Note, []Problem) {
	out := []Note{}
	side, err := annotations.Open(r.rec.TapePath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, append(problems, Problem{recording.TapeName + annotations.Suffix, (&within{r.rec.Dir, err}).Error()})
	}
	if side == nil {
		return out, problems
	}
	for _, a := range side.Annotations {
		out = append(out, Note{Seq: a.EventID, Kind: string(a.Kind), Text: a.Evidence, Author: a.Author.ID})
	}
	return out, problems
}

// maxChecked is how many bytes a recording may have whose seal is checked while somebody waits for its page.
const maxChecked = 32 << 20

// seal says what stands in a seal and whether it holds, which reads every byte: it is asked once.
func (r *Source) seal(ctx context.Context, size int64) *Seal {
	if !r.rec.Manifest.Sealed {
		return nil
	}
	r.sealing.Lock()
	defer r.sealing.Unlock()
	if r.sealed != nil {
		return r.sealed
	}
	s := &Seal{Checked: "not checked: `tapedeck verify` reads all of it"}
	d, err := seal.ReadDocument(r.rec.Dir)
	switch {
	case err != nil:
		s.Checked, s.broken = err.Error(), true
	case r.whole || size <= maxChecked:
		s.Checked = sealHolds(ctx, r.rec)
		s.broken = s.Checked != sealOK && ctx.Err() == nil
	}
	if err == nil {
		s.Root, s.Key = d.Root.String(), d.Key.String()
	}
	if ctx.Err() == nil {
		r.sealed = s
	}
	return s
}

const sealOK = "holds"

// sealHolds is sealOK, or why a seal does not.
func sealHolds(ctx context.Context, rec *recording.Recording) string {
	res, err := seal.Verify(ctx, rec.Dir, &seal.VerifyOptions{ID: rec.Manifest.ID})
	switch {
	case err != nil:
		return err.Error()
	case sealing.HalfSealed(rec):
		res.Problems = sealing.ButManifest(res.Problems)
	}
	problems := slices.DeleteFunc(res.Problems, func(p seal.Problem) bool { return p.Code == seal.CodeSigner }) // a key that is not known here
	if len(problems) > 0 {
		return visible.Line(problems[0].Path + ": " + problems[0].Message)
	}
	return sealOK
}

// report makes report.json.
func (r *Source) report() (*Report, error) {
	j := library.JudgementOf(r.rec)
	if j == nil {
		return nil, ErrNoDocument
	}
	out := &Report{Fidelity: j.Report, Other: j.Other, At: j.At.UnixMilli()}
	if j.Replay != "" {
		out.Replay = idOf(j.Replay)
	}
	out.First = firstOf(j.Report)
	return out, nil
}

// firstOf is the first record that diverges: of what was asked for and not recorded that which is nearest to it.
func firstOf(r *fidelity.Report) *uint64 {
	for i := range r.Divergences {
		d := &r.Divergences[i]
		if d.Category != fidelity.MissingInRecorded && d.Seq != nil {
			return d.Seq
		}
		if d.Nearest != nil {
			return d.Nearest
		}
	}
	return nil
}

// terminalOf makes terminal.json. The times of a recording's terminal are those of its tape.
func terminalOf(rec *recording.Recording) (*Terminal, error) {
	t, err := rec.OpenTerminal()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, ErrNoDocument
	}
	defer t.Close()
	var b bytes.Buffer
	if err := picture.Records(&b, t, &picture.Options{MaxIdle: -1}); err != nil {
		return nil, err
	}
	events := bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(",\n")) // no record has a line break in it
	out := &Terminal{Events: append(append([]byte("["), events...), ']')}
	m := t.Manifest().Terminal
	out.Cols, out.Rows = m.InitialCols, m.InitialRows
	return out, nil
}

// current reports whether a recording is still in the state in which it was opened.
func (r *Source) current() bool {
	m, err := recording.ReadManifest(r.rec.Dir)
	return err == nil && m.State == r.rec.Manifest.State
}
