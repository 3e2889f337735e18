package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/ui"
)

// bundle is the page that is built in.
var bundle = page.Bundle{Script: ui.Script, Style: ui.Style}

type exportOptions struct {
	output   string
	payloads int64
	otlp     otlpOptions
}

func newExportCommand(std *console) *cobra.Command {
	var o exportOptions
	cmd := command("export", "REC…", interruptibly(func(cmd *cobra.Command, args []string) error { return runExport(cmd.Context(), &o, args, std) }))
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`file` that gets the page, NAME.html; NAME.md gets what was said, NAME.json all but payloads")
	parsedFlag(f, &o.payloads, "payloads", "20M", "how many `bytes` of payloads it holds at most, before compression, 0 for none; the others are named", parseBytes)
	o.otlp.add(f, "spans for OpenTelemetry, to the `URL|FILE` of a receiver or a file; env: as the environment has it")
	std.jsonFlag(cmd, "what was written as JSON")
	cmd.MarkFlagsMutuallyExclusive("output", "otlp")
	cmd.MarkFlagsMutuallyExclusive("payloads", "otlp")
	return cmd
}

func runExport(ctx context.Context, o *exportOptions, names []string, std *console) error {
	switch {
	case o.otlp.to != "":
		return o.otlp.export(ctx, names, std)
	case o.output == "":
		return errors.New("a required flag is missing: --output FILE.html for a page, or --otlp URL|FILE for spans")
	}
	format, err := formatOf(o.output, "", map[string]string{".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"})
	switch {
	case err != nil:
		return err
	case format == "markdown" && len(names) > 1:
		return fmt.Errorf("-o %s: Markdown is of one recording; tapedeck compare holds several against each other", o.output)
	case format == "markdown":
		return runSessionExport(ctx, &sessionExportOptions{output: o.output, maxText: 4000, force: true}, names[0], std)
	}
	limit := o.payloads
	if limit == 0 {
		limit = -1
	}
	return withRecordings(ctx, names, std.progress(), func(ctx context.Context, recs []*recording.Recording, prices *llm.Prices) error {
		shelf, err := page.NewShelf(ctx, recs, prices)
		if err != nil {
			return err
		}
		step, done := std.progress().counted("writing documents")
		var written *page.Written
		err = recording.WritePrivate(o.output, func(w io.Writer) (err error) {
			if format == "json" {
				written, err = shelf.WriteJSON(ctx, w)
			} else {
				written, err = shelf.WriteFile(ctx, w, &page.FileOptions{Bundle: bundle, Payloads: limit, Progress: step})
			}
			return err
		})
		if done(); err != nil {
			return err
		}
		return o.tell(written, std)
	})
}

// tell says what was written.
func (o *exportOptions) tell(w *page.Written, std *console) error {
	if std.json {
		return printJSON(std.out, struct {
			Path string `json:"path"`
			*page.Written
		}{o.output, w})
	}
	visible.Fprintf(std.out, "%s: %s, %s\n", o.output, size(w.Bytes), plural(w.Documents, "document", "documents"))
	for _, p := range w.Problems {
		std.say("%s: %s", p.Path, p.What)
	}
	if n := w.Missing; n > 0 {
		std.say("%s missing from the recording: tapedeck verify says which", plural(n, "payload is", "payloads are"))
	}
	if n := w.TooLarge; n > 0 {
		std.say("it names %s that it does not hold: --payloads allows no more", plural(n, "document", "documents"))
	}
	return nil
}

type uiOptions struct {
	store  storeFlags
	stored bool // --store
	runs   runsOptions
	listen string
	open   bool
}

func newUICommand(std *console) *cobra.Command {
	var o uiOptions
	cmd := withHelp("ui", &cobra.Command{
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.stored, err = o.store.asked(cmd.Flags()); err != nil {
				return err
			}
			return runUI(cmd.Context(), &o, args, std)
		},
	})
	f := cmd.Flags()
	o.store.define(f)
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of the loopback; port 0 takes a free one")
	f.StringVar(&o.runs.daemon, "daemon", "", "`URL` of a daemon whose runs are shown too, and what waits there for a person")
	f.StringVar(&o.runs.tokenFile, "token-file", "", "`file` with that daemon's host token (default: where it keeps it)")
	f.BoolVar(&o.open, "open", false, "open it in the browser")
	std.jsonFlag(cmd, "where it is as JSON on stdout")
	return cmd
}

func runUI(ctx context.Context, o *uiOptions, names []string, std *console) error {
	prices, err := projectPrices()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	shown, clean, err := o.stacks(ctx, names, prices, std)
	if err != nil {
		return err
	}
	defer clean()
	if o.runs.daemon != "" {
		d, err := o.runs.dial(ctx, 0)
		if err != nil {
			return err
		}
		defer d.Close()
		shown.Daemon = &page.Daemon{Client: d.c, URL: d.url}
	}
	l, err := page.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	server, err := page.NewServer(shown, bundle, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := o.ready(server.URL(), std); err != nil {
		return errors.Join(err, l.Close())
	}
	if o.open {
		defer browse(server, std)()
	}
	return server.Serve(ctx, l)
}

// ready says where the page is.
func (o *uiOptions) ready(url string, std *console) error {
	if std.json {
		if err := printJSON(std.out, map[string]string{"url": url}); err != nil {
			return err
		}
	} else if _, err := visible.Fprintf(std.out, "%s\n", url); err != nil {
		return err
	}
	std.say("who has this address sees all that is in it; ^C ends it")
	return nil
}

// browse opens the page in the browser. done is to be called at the end.
func browse(server *page.Server, std *console) (done func()) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	done, err := server.Browse(program)
	if err != nil {
		std.say("no browser was opened: %v", err)
	}
	return done
}

// stacks are what is shown: the runs of a store, or what names stand for.
func (o *uiOptions) stacks(ctx context.Context, names []string, prices *llm.Prices, std *console) (*page.Stacks, func(), error) {
	if !o.stored {
		shown, clean, err := stacks(ctx, names, prices, std.progress())
		if err != nil {
			clean()
		}
		return shown, clean, err
	}
	if len(names) > 0 {
		return nil, nil, errors.New("--store shows all runs of the store's project: leave the names out")
	}
	l, err := o.store.look(ctx, std)
	if err != nil {
		return nil, nil, err
	}
	return l.shown(prices), l.close, nil
}

// stacks are what names stand for: the library of the working directory, that of another directory, recordings, or all below a directory.
func stacks(ctx context.Context, names []string, prices *llm.Prices, p *progress) (shown *page.Stacks, clean func(), err error) {
	clean = func() {}
	switch len(names) {
	case 0:
		lib, err := openLibrary()
		if err != nil {
			return nil, clean, err
		}
		return page.ShowLibrary(lib, prices), clean, nil
	case 1:
		if shown, err := page.ShowDir(names[0], prices); shown != nil || err != nil {
			return shown, clean, err
		}
	}
	recs, clean, err := openAll(ctx, names, p)
	if err != nil {
		return nil, clean, err
	}
	var dirs []string
	for _, rec := range recs {
		dirs = append(dirs, rec.Dir)
	}
	return page.ShowRecordings(plural(len(recs), "recording", "recordings"), dirs, prices), clean, nil
}

// asked reports whether a run of a store is meant, which --store says.
func (o *storeFlags) asked(f *pflag.FlagSet) (bool, error) {
	if !f.Changed("store") && (f.Changed("blobs") || f.Changed("project")) {
		return false, errors.New("--project and --blobs are of a team's store: --store default, or --store URL, says that it is meant")
	}
	return f.Changed("store"), nil
}

// A looking is what it takes to look at runs of a store where they lie. It must be closed.
type looking struct {
	ctx     context.Context
	stop    func()
	store   team.Access
	project string
	temp    *recording.Temp
	dir     string // temp's, and no link
	std     *console

	mu   sync.Mutex
	runs map[string]string // ids by directory; guarded by mu
	ends []func()          // guarded by mu
}

func (o *storeFlags) look(ctx context.Context, std *console) (_ *looking, err error) {
	l := &looking{std: std, runs: make(map[string]string)}
	l.ctx, l.stop = interruptible(ctx)
	if l.store, err = o.open(l.ctx); err != nil {
		l.stop()
		return nil, err
	}
	l.project = o.project
	if l.temp, err = recording.NewTemp(os.TempDir(), library.OpenPrefix); err != nil {
		l.close()
		return nil, err
	}
	if l.dir, err = filepath.EvalSymlinks(l.temp.Dir); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *looking) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.ends {
		end()
	}
	if l.temp != nil {
		_ = l.temp.Remove()
	}
	l.store.Close()
	l.stop()
}

// at makes the directory of a run; with a seq it has that record alone.
func (l *looking) at(id, dir string, seq *uint64) error {
	p := l.std.progress()
	_, end, err := team.Look(l.ctx, l.store, l.project, id, dir, &team.LookOptions{Seq: seq, Progress: p.bytes("fetching a run that cannot be read in parts")})
	if p.end(); err != nil {
		return storeHint(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end)
	return nil
}

// maxShown is how many runs of a store a page lists, those that were pushed last.
const maxShown = 1000

// shown are the runs of the store's project as a page shows them.
func (l *looking) shown(prices *llm.Prices) *page.Stacks {
	return page.ShowElsewhere(l.store.Name(), &page.Elsewhere{Rows: l.rows, Fill: l.fill, Search: l.search}, prices)
}

func (l *looking) rows() ([]library.Row, error) {
	runs, err := l.store.Runs(l.ctx, &team.Query{Project: l.project, Limit: maxShown})
	if err != nil {
		return nil, err
	}
	verdicts, err := verdictsOf(l.ctx, l.store, l.project, runs)
	if err != nil {
		return nil, err
	}
	out := make([]library.Row, 0, len(runs))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range slices.Backward(runs) {
		r := &runs[i]
		m := recording.NewManifest(r.StartedAt)
		m.ID, m.State, m.Argv, m.Exit, m.Totals, m.Parent, m.ForkSeq, m.Sealed = r.ID, r.State, r.Argv, r.Exit, r.Totals, r.Parent, r.ForkSeq, r.Sealed
		row := library.Row{Totals: r.Totals, Verdict: r.Verdict}
		row.Name, row.Path = r.ID, filepath.Join(l.dir, r.Digest.String(), library.UnpackedName)
		row.Recording = &recording.Recording{Dir: row.Path, Manifest: m}
		if found := verdicts[r.ID]; len(found) > 0 {
			row.Verdict = workersVerdict(&found[0])
		}
		l.runs[row.Path] = r.ID
		out = append(out, row)
	}
	return out, nil
}

// fill makes the directory of a run that rows has listed, once.
func (l *looking) fill(dir string) error {
	l.mu.Lock()
	id, known := l.runs[dir]
	l.mu.Unlock()
	if recording.Exists(filepath.Join(dir, recording.ManifestName)) {
		return nil
	}
	if !known {
		return fmt.Errorf("%w: the run has been removed from the store", page.ErrNoDocument)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return l.at(id, dir, nil)
}

// search finds runs by the texts that the store has of them.
func (l *looking) search(ctx context.Context, text string) (*page.Found, error) {
	out := &page.Found{Hits: []page.Hit{}}
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	hits, err := l.store.Search(ctx, text, &team.Query{Project: l.project})
	if errors.Is(err, team.ErrNoWords) {
		return out, nil
	}
	for i := range hits {
		out.Hits = append(out.Hits, page.Hit{Run: hits[i].Run.ID, Where: hits[i].What, Text: hits[i].Excerpt})
	}
	out.More = len(hits) >= team.DefaultLimit
	return out, err
}

// lookAt is the directory of a run of a store, for a command that shows one; with a seq it has that record alone.
func (o *storeFlags) lookAt(ctx context.Context, id string, seq *uint64, std *console) (dir string, clean func(), err error) {
	l, err := o.look(ctx, std)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(l.dir, library.UnpackedName)
	if err := l.at(id, dir, seq); err != nil {
		l.close()
		return "", nil, err
	}
	return dir, l.close, nil
}
