package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
	if o.output == "" {
		_, err := std.out.Write(b)
		return err
	}
	if _, err := os.Lstat(o.output); err == nil {
		return fmt.Errorf("%s is there already: choose another name", o.output)
	}
	if err := durable.WriteFile(o.output, b, &durable.Options{Mode: 0o644}); err != nil {
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
	verdict := "holds"
	if n := len(v.Findings) + v.More; n > 0 {
		verdict = "does not hold: " + plural(n, "problem", "problems")
	}
	_, err := visible.Fprintf(std.out, "%s (cassette, %s) %s: %s, %s of output\n", shortPath(v.Path), string(v.State), verdict,
		plural(v.Events, "event", "events"), size(v.Bytes))
	return err
}
