package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette/foreign"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassetteImportOptions struct {
	output     string
	logs       foreign.Options
	rows, cols int
	term       string
	exit       int
	exitGiven  bool
	account    string
	json       bool
}

func newCassetteImportCommand(std streams) *cobra.Command {
	var o cassetteImportOptions
	cmd := withHelp("cassette import", &cobra.Command{
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.exitGiven = cmd.Flags().Changed("exit")
			return runCassetteImport(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the cassette (default: a new one in .tapedeck/)")
	f.StringVar(&o.logs.Timing, "timing", "", "timing `file` of a typescript")
	f.StringVar(&o.logs.LogOut, "log-out", "", "`file` of what was printed, of a typescript")
	f.StringVar(&o.logs.LogIn, "log-in", "", "`file` of what was typed, of a typescript")
	f.StringVar(&o.logs.LogIO, "log-io", "", "`file` of both, of a typescript")
	f.IntVar(&o.rows, "rows", 0, "`rows` of the terminal")
	f.IntVar(&o.cols, "cols", 0, "`columns` of the terminal")
	f.StringVar(&o.term, "term", "", "`name` of the terminal's type, TERM")
	f.IntVar(&o.exit, "exit", 0, "exit `code` of the program, where FILE says none")
	f.StringVar(&o.account, "account", "", "`name` of an account that is masked")
	f.BoolVar(&o.json, "json", false, "the result as JSON")
	return cmd
}

func runCassetteImport(ctx context.Context, o *cassetteImportOptions, file string, std streams) error {
	src, err := foreign.Open(file, &o.logs)
	if err != nil {
		return err
	}
	defer src.Close()
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	id, dir, err := lib.NewCassette(o.output)
	if err != nil {
		return err
	}
	p := progressFor(std, o.json)
	opts, err := o.options(id, p)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	im, err := foreign.Import(ctx, src, dir, opts)
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	return o.tell(im, dir, std)
}

func (o *cassetteImportOptions) options(id string, p *progress) (*foreign.ImportOptions, error) {
	known, err := secrets.OfTerminal(nil, os.Environ())
	if err != nil {
		return nil, err
	}
	out := &foreign.ImportOptions{
		ID: id, Rows: o.rows, Cols: o.cols, Term: o.term, Scrub: known,
		Progress: func(done int64) { p.show(func() string { return "importing: " + size(done) + " of output" }) },
	}
	if o.exitGiven {
		out.Exit = &o.exit
	}
	if o.account != "" {
		out.Accounts = []string{o.account}
	}
	return out, nil
}

// importedCassette is what cassette import --json prints.
type importedCassette struct {
	Cassette   string   `json:"cassette"`
	ID         string   `json:"id"`
	Origin     any      `json:"origin"`
	Events     int      `json:"events"`
	Bytes      int64    `json:"bytes"`
	DurationMS int64    `json:"duration_ms"`
	Notes      []string `json:"notes"`
}

func (o *cassetteImportOptions) tell(im *foreign.Imported, dir string, std streams) error {
	if o.json {
		notes := im.Notes
		if notes == nil {
			notes = []string{}
		}
		return printJSON(std.out, &importedCassette{dir, im.Manifest.ID, im.Origin, im.Events, im.Output, im.Duration.Milliseconds(), notes})
	}
	for _, n := range im.Notes {
		visible.Fprintf(std.err, "tapedeck: %s\n", n)
	}
	if len(im.Origin.Unknown) > 0 {
		visible.Fprintf(std.err, "tapedeck: %s says nothing of: %s\n", string(im.Origin.Format), strings.Join(im.Origin.Unknown, ", "))
	}
	_, err := visible.Fprintf(std.err, "tapedeck: imported %s: %s, %s, %s\n", shortPath(dir), string(im.Origin.Format),
		clockTime(im.Duration), fmt.Sprintf("%s in %s", size(im.Output), plural(im.Events, "event", "events")))
	return err
}
