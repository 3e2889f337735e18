package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassetteRecordOptions struct {
	terminal.RecordOptions
	output     string
	rows, cols int
}

func newCassetteRecordCommand(std *console) *cobra.Command {
	var o cassetteRecordOptions
	cmd := recorderCommand("cassette record", "CMD…", func(ctx context.Context, argv []string) (int, error) {
		return runCassetteRecord(ctx, &o, argv, std)
	})
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the cassette (default: a new one in .tapedeck/)")
	f.IntVar(&o.rows, "rows", 0, "`rows` of the terminal (default: yours, else 24)")
	f.IntVar(&o.cols, "cols", 0, "`columns` of the terminal (default: yours, else 80)")
	f.StringVar(&o.Session.Term, "term", "", "`name` of the terminal's type, TERM (default: yours, else xterm-256color)")
	f.StringArrayVar(&o.Session.Env, "env", nil, "`NAME` or NAME=VALUE that the program finds in its environment, and nothing else (repeatable; default: all that you have)")
	f.StringVar(&o.Account, "account", "", "`name` of the account that the program uses: masked, and recorded by one at a time")
	f.DurationVar(&o.Timeout, "timeout", 0, "end the program after this `time`, as in 30s")
	f.StringArrayVar(&o.Cassette.Preserve, "preserve", nil, "`text` for the scrub report: what was kept on purpose (repeatable)")
	f.Int64Var(&o.Cassette.ResolutionMS, "resolution", 1, "of the times, in `ms`")
	std.jsonFlag(cmd, "the result as JSON on stdout; the program's output then goes to stderr")
	return cmd
}

// statusTimeout is that of a program which --timeout ended, as with timeout(1).
const statusTimeout = 124

func runCassetteRecord(ctx context.Context, o *cassetteRecordOptions, args []string, std *console) (exit int, err error) {
	p := newProgress(std.err)
	rec, dir, err := recordCassette(ctx, o, args, std, p)
	if rec == nil {
		return 0, err
	}
	p.end()
	endLine(std.err, rec.OpenLine)
	if err == nil {
		err = printRecorded(rec, dir, std)
	}
	if rec.TimedOut {
		return statusTimeout, err
	}
	return rec.Exit.Code, err
}

func recordCassette(ctx context.Context, o *cassetteRecordOptions, args []string, std *console, p *progress) (*terminal.Recorded, string, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, "", err
	}
	id, dir, err := lib.NewCassette(o.output)
	if err != nil {
		return nil, "", err
	}
	if err := o.fill(args, std); err != nil {
		return nil, "", err
	}
	o.Dir, o.Cassette.ID, o.LockRoot = dir, id, lib.Dir
	o.Cassette.Progress = p.bytes("looking through what was printed")
	signals, stop := catchSignals()
	defer stop()
	o.Signals = signals
	rec, err := terminal.RecordSession(ctx, &o.RecordOptions)
	return rec, dir, err
}

// fill sets what does not depend on where the cassette lies.
func (o *cassetteRecordOptions) fill(args []string, std *console) (err error) {
	c := &o.Cassette
	if o.Timeout < 0 || c.ResolutionMS < 1 || c.ResolutionMS > 60000 {
		return errors.New("--timeout and --resolution: want a time above 0, and 1 to 60000 ms")
	}
	if c.Scrub, err = secrets.OfTerminal(args, slices.Concat(os.Environ(), o.Session.Env)); err != nil {
		return err
	}
	o.Std = [3]any{std.in, std.out, std.err}
	if o.Session.Size, err = o.size(o.Std); err != nil {
		return err
	}
	if std.json {
		o.Std[1] = std.err
	}
	o.Session.Argv, c.Command.TimeoutMS = args, o.Timeout.Milliseconds()
	if o.Account != "" {
		c.Accounts = []string{o.Account}
	}
	return nil
}

// size is the one that was asked for: what was not named is that of the caller's terminal.
func (o *cassetteRecordOptions) size(std [3]any) (terminal.Size, error) {
	if o.rows < 0 || o.cols < 0 || o.rows > maxSide || o.cols > maxSide {
		return terminal.Size{}, fmt.Errorf("--rows %d --cols %d: want 1 to %d of each", o.rows, o.cols, maxSide)
	}
	if o.rows == 0 && o.cols == 0 {
		return terminal.Size{}, nil
	}
	_, size := terminal.Host(std)
	if size.Rows == 0 || size.Cols == 0 {
		size = terminal.Size{Rows: cassette.DefaultRows, Cols: cassette.DefaultCols}
	}
	if o.rows > 0 {
		size.Rows = o.rows
	}
	if o.cols > 0 {
		size.Cols = o.cols
	}
	return terminal.Size{Rows: size.Rows, Cols: size.Cols}, nil
}

// maxSide is the most rows, and columns, that the screen model has.
const maxSide = 4096

// recordedCassette is what cassette record --json prints.
type recordedCassette struct {
	Cassette   string         `json:"cassette"`
	ID         string         `json:"id"`
	ExitCode   int            `json:"exit"`
	Signal     string         `json:"signal,omitempty"`
	TimedOut   bool           `json:"timed_out"`
	DurationMS int64          `json:"duration_ms"`
	Bytes      int64          `json:"bytes"`
	Masked     int            `json:"masked"`
	HitCounts  map[string]int `json:"hit_counts"`
}

func printRecorded(rec *terminal.Recorded, dir string, std *console) error {
	r, err := cassette.Open(dir, &cassette.OpenOptions{Lazy: true})
	if err != nil {
		return err
	}
	defer r.Close()
	hits := r.ScrubReport().HitCounts
	if std.json {
		return printJSON(std.out, &recordedCassette{
			Cassette: dir, ID: rec.Manifest.ID, ExitCode: rec.Exit.Code, Signal: rec.Exit.Signal, TimedOut: rec.TimedOut,
			DurationMS: rec.Exit.Duration.Milliseconds(), Bytes: r.Size(), Masked: total(hits), HitCounts: hits,
		})
	}
	end := fmt.Sprintf("exit %d", rec.Exit.Code)
	if rec.Exit.Signal != "" {
		end = "ended by " + rec.Exit.Signal
	}
	if rec.TimedOut {
		end += " after --timeout"
	}
	return std.say("recorded %s: %s, %s, %s, %s", shortPath(dir), clockTime(rec.Exit.Duration),
		size(r.Size()), end, masked(total(hits)))
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func masked(n int) string {
	if n == 0 {
		return "no secrets found"
	}
	return plural(n, "secret masked", "secrets masked")
}

func newCassetteScrubCommand(std *console) *cobra.Command {
	var o cassette.ScrubOptions
	cmd := command("cassette scrub", "CASSETTE", func(_ *cobra.Command, args []string) error { return runCassetteScrub(&o, args[0], std) })
	f := cmd.Flags()
	f.StringVar(&o.To, "to", "", "`directory` for the masked one, which is made (default: in place)")
	f.StringArrayVar(&o.Accounts, "account", nil, "`name` of an account that is masked wherever it stands as a word (repeatable)")
	f.BoolVar(&o.KeepEmail, "keep-email", false, "leave addresses of email")
	f.StringArrayVar(&o.Preserve, "preserve", nil, "`text` for the report: what is kept on purpose (repeatable)")
	std.jsonFlag(cmd, "the report as JSON")
	return cmd
}

func runCassetteScrub(o *cassette.ScrubOptions, name string, std *console) error {
	dir, err := cassettePath(name)
	if err != nil {
		return err
	}
	if o.To == "" {
		if err := unsealedOnly(dir); err != nil {
			return err
		}
	}
	if o.Scrub, err = secrets.OfTerminal(nil, os.Environ()); err != nil {
		return err
	}
	stop := std.progress().busy("masking")
	report, err := cassette.Scrub(dir, o)
	stop()
	if err != nil {
		return finishedOnly(dir, err, "only a finished cassette is masked")
	}
	if o.To != "" {
		dir = o.To
	}
	if std.json {
		return printJSON(std.out, map[string]any{"cassette": dir, "scrub": report})
	}
	return std.say("%s: %s", shortPath(dir), secretsOf(report))
}

// unsealedOnly refuses to write into the terminal of a sealed recording: its seal would not hold any more.
func unsealedOnly(dir string) error {
	rec, err := recording.Open(filepath.Dir(dir))
	if err != nil || !rec.Manifest.Sealed {
		return nil // it is no recording's
	}
	return fmt.Errorf("%s is the terminal of a sealed recording, which masking would break: mask a copy with --to DIRECTORY", shortPath(dir))
}

type cassetteCheckOptions struct {
	cassette string
	draft    string
	output   string
	junit    string
	partial  bool
	schema   bool
	verbose  bool
}

func newCassetteCheckCommand(std *console) *cobra.Command {
	var o cassetteCheckOptions
	cmd := withHelp("cassette check", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if o.schema || o.draft != "" {
				return cobra.NoArgs(cmd, args)
			}
			return takes("FILE…")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runCassetteCheck(cmd.Context(), &o, args, std) },
	})
	f := cmd.Flags()
	f.StringVar(&o.cassette, "cassette", "", "`CASSETTE` in place of the one that FILE names; its id and digest must be those all the same")
	f.StringVar(&o.draft, "draft", "", "write a first scenario for this `CASSETTE`")
	f.StringVarP(&o.output, "output", "o", "", "`file` for --draft (default: stdout)")
	f.StringVar(&o.junit, "junit", "", "write the results of one FILE as JUnit XML into this `file`")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	f.BoolVar(&o.schema, "schema", false, "write the JSON Schema of scenario files")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "what passed too")
	std.jsonFlag(cmd, "the results as JSON")
	cmd.RegisterFlagCompletionFunc("cassette", cassetteNames)
	cmd.RegisterFlagCompletionFunc("draft", cassetteNames)
	return cmd
}

func runCassetteCheck(ctx context.Context, o *cassetteCheckOptions, files []string, std *console) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	switch {
	case o.schema:
		_, err := std.out.Write(check.Schema())
		return err
	case o.draft != "":
		return o.writeDraft(ctx, std)
	case o.output != "":
		return errors.New("-o is for --draft; --junit FILE and --json write results")
	case o.junit != "" && len(files) > 1:
		return errors.New("--junit takes the results of one FILE")
	}
	opts := &check.Options{Partial: o.partial}
	if o.cassette != "" {
		dir, err := cassettePath(o.cassette)
		if err != nil {
			return err
		}
		opts.Cassette = dir
	}
	return o.checkAll(ctx, files, opts, std)
}

// checkAll checks every file, also after one that could not be: its error is told, and the status is 1.
func (o *cassetteCheckOptions) checkAll(ctx context.Context, files []string, opts *check.Options, std *console) error {
	var results []*check.Result
	var failed error
	status := statusDone
	for _, file := range files {
		res, err := o.checkOne(ctx, file, opts, std)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		results = append(results, res)
		switch {
		case res.Counts.Unchecked > 0:
			status = statusFailed
		case !res.Passed && status == statusDone:
			status = statusDiverged
		}
	}
	if std.json {
		if err := printJSON(std.out, checkedFiles(results, failed)); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	if status != statusDone {
		return &statusError{status: status}
	}
	return nil
}

func checkedFiles(results []*check.Result, failed error) map[string]any {
	passed := failed == nil
	for _, r := range results {
		passed = passed && r.Passed
	}
	out := map[string]any{"passed": passed, "results": results}
	if results == nil {
		out["results"] = []any{}
	}
	if failed != nil {
		out["error"] = failed.Error()
	}
	return out
}

func (o *cassetteCheckOptions) checkOne(ctx context.Context, file string, opts *check.Options, std *console) (*check.Result, error) {
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a directory, and check takes scenario files: tapedeck cassette check --draft CASSETTE writes a first one", file)
	}
	p := std.progress()
	stop := p.busy("checking " + file)
	res, err := check.File(ctx, file, opts)
	stop()
	if err != nil {
		return nil, orInterrupted(err)
	}
	if o.junit != "" {
		if err := writeWhole(o.junit, res.WriteJUnit); err != nil {
			return nil, err
		}
	}
	if std.json {
		return res, nil
	}
	return res, res.WriteText(std.out, &check.TextOptions{Color: colour(std.out), Verbose: o.verbose})
}

func (o *cassetteCheckOptions) writeDraft(ctx context.Context, std *console) error {
	dir, err := cassettePath(o.draft)
	if err != nil {
		return err
	}
	folder := "."
	if o.output != "" {
		folder = filepath.Dir(o.output)
	}
	b, err := check.Draft(ctx, dir, folder)
	if err != nil {
		return finishedOnly(dir, err, "a scenario is bound to the digest of a finished one")
	}
	if err := putNew(o.output, b, std); err != nil || o.output == "" || o.output == "-" {
		return err
	}
	return std.say("wrote %s; tapedeck cassette check %s", o.output, o.output)
}

// verifiedCassette is what verify --json prints of a cassette.
type verifiedCassette struct {
	Path  string         `json:"path"`
	State cassette.State `json:"state"`
	*cassette.Verification
}

func verifyCassette(o *verifyOptions, dir string, std *console) error {
	stop := std.progress().busy("verifying")
	v, err := verifiedOf(dir)
	stop()
	if err != nil {
		return err
	}
	holds := len(v.Findings) == 0 && (v.State != cassette.StateUnfinished || !o.strict)
	return std.verdict(holds, v, func() error { return v.write(std) })
}

// verifiedOf reads all of the cassette. Of one without a manifest, which its recorder writes last, what is whole is sound.
func verifiedOf(dir string) (*verifiedCassette, error) {
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: true})
	if err == nil {
		defer r.Close()
	}
	if err != nil || !errors.Is(r.Unfinished(), cassette.ErrNoManifest) {
		v, err := cassette.Verify(dir)
		return &verifiedCassette{dir, cassette.StateFinished, v}, err
	}
	v := &cassette.Verification{ID: r.Manifest().ID, Bytes: r.Size(), Findings: []cassette.Finding{}}
	for e, err := range r.Events(&cassette.EventsOptions{NoBytes: true}) {
		if err != nil {
			return nil, err
		}
		v.Events++
		switch e.Stream {
		case cassette.StreamOutput:
			v.Chunks++
		case cassette.StreamFrames:
			v.Frames++
		}
	}
	return &verifiedCassette{dir, cassette.StateUnfinished, v}, nil
}

func (v *verifiedCassette) write(std *console) error {
	if v.State == cassette.StateUnfinished {
		std.say("unfinished: its recorder is still at work or came to no end; this is of what is whole")
	}
	for _, f := range v.Findings {
		visible.Fprintln(std.out, f.Text)
	}
	if v.More > 0 {
		visible.Fprintf(std.out, "and %d more\n", v.More)
	}
	_, err := visible.Fprintf(std.out, "%s (cassette, %s) %s: %s, %s of output\n", shortPath(v.Path), string(v.State), holds(len(v.Findings)+v.More),
		plural(v.Events, "event", "events"), size(v.Bytes))
	return err
}
