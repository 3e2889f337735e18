package foreign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// ImportOptions say what a foreign file does not. Nil and zero work.
type ImportOptions struct {
	ID         string // "" is a random UUID
	Rows, Cols int    // 0: what the file says, else 24 and 80
	Term       string // "": what the file says, else xterm-256color
	Exit       *int   // the exit code where the file says none; nil leaves it unknown
	Scrub      *scrub.Scrubber
	Accounts   []string
	KeepEmail  bool
	Sync       bool
	// Progress is told how many bytes of output were taken.
	Progress func(done int64)
}

// Imported is what was made of a foreign file.
type Imported struct {
	Manifest *cassette.Manifest
	Origin   *Origin
	Events   int // that were taken
	Output   int64
	Duration time.Duration
	Notes    []string
}

// Import makes a cassette of src in dir, whole or not at all. dir must be empty or not be there: else cassette.ErrExists. Times
// are those of the file, to the millisecond.
func Import(ctx context.Context, src Source, dir string, opts *ImportOptions) (*Imported, error) {
	o := ImportOptions{}
	if opts != nil {
		o = *opts
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("%s: %w, or other files: name a directory that is not there yet", dir, cassette.ErrExists)
	}
	origin, err := originOf(src)
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(parent, durable.TempPrefix+"import-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) // gone already where all went well
	im := &importer{src: src, o: &o, origin: origin}
	out, err := im.run(ctx, temp)
	if err != nil {
		return nil, err
	}
	os.Remove(dir) // an empty one, which not every system renames over
	return out, os.Rename(temp, dir)
}

// An importer copies a Source into a Recorder.
type importer struct {
	src    Source
	o      *ImportOptions
	origin *Origin
	rec    *cassette.Recorder
	now    atomic.Int64 // the time of the event that is copied; the recorder reads it on its own goroutine too
	exit   *cassette.Exit
	out    Imported
}

func (im *importer) run(ctx context.Context, dir string) (*Imported, error) {
	create, err := im.options()
	if err != nil {
		return nil, err
	}
	if im.rec, err = cassette.Create(dir, create); err != nil {
		return nil, err
	}
	if err := im.copy(ctx); err != nil {
		return nil, errors.Join(err, im.rec.Abort())
	}
	if d := im.src.Header().Duration; d > im.at() && d <= MaxTime {
		im.now.Store(int64(d))
	}
	im.out.Duration, im.out.Notes, im.out.Origin = im.at(), im.src.Notes(), im.origin
	im.out.Manifest, err = im.rec.Finish(im.final())
	return &im.out, err
}

func (im *importer) at() time.Duration { return time.Duration(im.now.Load()) }

// options puts in what the file does not say, and notes that in the origin.
func (im *importer) options() (*cassette.CreateOptions, error) {
	h, o := im.src.Header(), im.o
	scrubbing := &tty.Options{Scrub: o.Scrub, Accounts: o.Accounts, KeepEmail: o.KeepEmail}
	t := cassette.Terminal{InitialRows: h.Rows, InitialCols: h.Cols, Term: h.Term}
	if h.Rows == 0 {
		t.InitialRows, t.InitialCols = DefaultRows, DefaultCols
		im.unknown("size")
	}
	if h.Term == "" {
		t.Term = DefaultTerm
		im.unknown("term")
	}
	if h.Format == AsciicastV1 || h.Format == Ttyrec {
		im.unknown("input")
	}
	if h.Format == AsciicastV1 || h.Format == AsciicastV2 || h.Format == Ttyrec {
		im.unknown("exit")
	}
	override(&t.InitialRows, o.Rows)
	override(&t.InitialCols, o.Cols)
	override(&t.Term, o.Term)
	if err := checkSize(t.InitialRows, t.InitialCols); err != nil {
		return nil, err
	}
	optional := map[string]json.RawMessage{}
	var err error
	if optional[OptionalImport], err = json.Marshal(im.origin); err != nil {
		return nil, err
	}
	if c := carry(h, scrubbing); c != nil {
		optional[OptionalAsciicast] = c
	}
	out := &cassette.CreateOptions{
		ID: o.ID, Harness: cassette.Harness{Name: programOf(h)}, Terminal: t, ResolutionMS: 1,
		Command: cassette.Command{Argv: argvOf(h.Command)}, Optional: optional,
		Scrub: o.Scrub, Accounts: o.Accounts, KeepEmail: o.KeepEmail, Sync: o.Sync,
		Clock: im.at,
	}
	if !h.Started.IsZero() {
		out.Provenance.RecordedAt = h.Started.Format(time.RFC3339)
	}
	return out, nil
}

func (im *importer) unknown(what string) { im.origin.Unknown = append(im.origin.Unknown, what) }

func override[T comparable](v *T, by T) {
	var zero T
	if by != zero {
		*v = by
	}
}

// programOf is the name of the program that was recorded, as far as h says one.
func programOf(h *Header) string {
	if f := strings.Fields(h.Command); len(f) > 0 {
		return filepath.Base(f[0])
	}
	if sh := h.Env["SHELL"]; sh != "" {
		return filepath.Base(sh)
	}
	return "unknown"
}

// argvOf is how recorders start a command line; nil for none.
func argvOf(command string) []string {
	if command == "" {
		return nil
	}
	return []string{"sh", "-c", command}
}

func (im *importer) copy(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := im.src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		im.now.Store(int64(e.At))
		if err := im.event(e); err != nil {
			return err
		}
		im.out.Events++
		if im.o.Progress != nil {
			im.o.Progress(im.out.Output)
		}
	}
}

func (im *importer) event(e *Event) error {
	switch e.Kind {
	case Output:
		im.out.Output += int64(len(e.Data))
		return im.rec.Output(e.Data)
	case Input:
		return im.rec.Input(e.Data, "")
	case Resize:
		return im.rec.Resize(cassette.Size{Rows: e.Rows, Cols: e.Cols})
	case Signal:
		return im.rec.Signal(string(e.Data))
	case Marker:
		payload, err := json.Marshal(&mark{Type: markerType, Label: string(e.Data)})
		if err != nil {
			return err
		}
		return im.rec.ServiceEvent(payload)
	case Exit:
		im.exit = &cassette.Exit{Code: e.Code, Exited: true}
	}
	return nil
}

// mark is the payload of the service event that a marker becomes.
type mark struct {
	Type  string `json:"type"`
	Label string `json:"label"`
}

const markerType = "marker"

// final is the record of the end. An exit that nobody knows is neither exited nor signaled.
func (im *importer) final() *cassette.Final {
	if im.exit == nil && im.o.Exit != nil {
		im.exit = &cassette.Exit{Code: *im.o.Exit, Exited: true}
	}
	notes := im.out.Notes
	if im.exit == nil {
		im.exit = new(cassette.Exit)
		notes = append(slices.Clip(notes), "how the program ended is not known: the file that was imported does not say it")
	}
	f := &cassette.Final{Exit: im.exit, DurationMS: im.at().Milliseconds()}
	if len(notes) > 0 {
		f.Metadata, _ = json.Marshal(map[string][]string{"import_notes": notes}) // strings always marshal
	}
	return f
}

// originOf digests the files of src.
func originOf(src Source) (*Origin, error) {
	o := &Origin{Format: src.Header().Format}
	for _, path := range src.Files() {
		f, err := digested(path)
		if err != nil {
			return nil, err
		}
		o.Files = append(o.Files, f)
	}
	return o, nil
}

func digested(path string) (OriginFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return OriginFile{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return OriginFile{Name: filepath.Base(path), Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// The keys of what this package puts into a manifest's optional.
const (
	// OptionalImport says where an imported cassette comes from: an Origin.
	OptionalImport = "import"
	// OptionalAsciicast holds what the header of an asciicast says and a manifest has no place for.
	OptionalAsciicast = "asciicast"
)

// An Origin is where an imported cassette comes from.
type Origin struct {
	Format  Format       `json:"format"`
	Files   []OriginFile `json:"files"`
	Unknown []string     `json:"unknown,omitempty"` // what the file does not say and was given or assumed: size, term, input, exit
}

// An OriginFile is one file that was read. Its name is without directories.
type OriginFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// carried is what stands under OptionalAsciicast.
type carried struct {
	Title       string            `json:"title,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	TermVersion string            `json:"term_version,omitempty"`
	Theme       *Theme            `json:"theme,omitempty"`
	IdleLimit   float64           `json:"idle_time_limit,omitempty"` // s
	Tags        []string          `json:"tags,omitempty"`
}

// carry is what of h is carried over, without secrets; nil where there is nothing.
func carry(h *Header, o *tty.Options) json.RawMessage {
	clean := func(s string) string {
		out, _ := tty.Text(s, o)
		return out
	}
	c := carried{Title: clean(h.Title), TermVersion: clean(h.TermVersion), Theme: h.Theme.valid(), IdleLimit: h.IdleLimit.Seconds()}
	for _, t := range h.Tags {
		c.Tags = append(c.Tags, clean(t))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		if name == "TERM" { // it has its own place
			continue
		}
		if c.Env == nil {
			c.Env = make(map[string]string)
		}
		c.Env[clean(name)] = secretless(name, h.Env[name], o)
	}
	b, err := json.Marshal(&c)
	if err != nil || string(b) == "{}" {
		return nil
	}
	return b
}

// secretless is the value of a variable; one whose name says so is a secret as a whole.
func secretless(name, value string, o *tty.Options) string {
	const sep = "="
	out, _ := tty.Text(name+sep+value, o)
	if len(out) < len(name)+len(sep) {
		return ""
	}
	return out[len(name)+len(sep):]
}

var (
	colour  = lazyregexp.New(`^#[0-9a-fA-F]{6}$`)
	colours = lazyregexp.New(`^#[0-9a-fA-F]{6}((:#[0-9a-fA-F]{6}){7}|(:#[0-9a-fA-F]{6}){15})$`)
)

// valid is the theme where all its colours are there, else nil.
func (t *Theme) valid() *Theme {
	if t == nil || !colour.MatchString(t.FG) || !colour.MatchString(t.BG) || !colours.MatchString(t.Palette) {
		return nil
	}
	return t
}

// uncarry puts what m carries into h.
func uncarry(h *Header, m *cassette.Manifest) {
	var c carried
	if json.Unmarshal(m.Optional[OptionalAsciicast], &c) != nil {
		return
	}
	h.Title, h.Env, h.TermVersion, h.Theme, h.Tags = c.Title, c.Env, c.TermVersion, c.Theme.valid(), c.Tags
	h.IdleLimit = seconds(c.IdleLimit)
}
