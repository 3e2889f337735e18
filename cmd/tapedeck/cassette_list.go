package main

import (
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newCassetteListCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("cassette list", &cobra.Command{
		SuggestFor:        []string{"ls"},
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runCassetteList(json, std) },
	})
	cmd.Flags().BoolVar(&json, "json", false, "the list as JSON")
	return cmd
}

// listedCassette is one entry of cassette list --json.
type listedCassette struct {
	ID         string         `json:"id"`
	Path       string         `json:"path"`
	State      cassette.State `json:"state,omitempty"`
	RecordedAt string         `json:"recorded_at,omitempty"`
	Argv       []string       `json:"argv,omitempty"`
	DurationMS int64          `json:"duration_ms,omitempty"`
	Exit       *cassette.Exit `json:"exit,omitempty"`
	Error      string         `json:"error,omitempty"`
}

func runCassetteList(json bool, std streams) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	names, err := lib.CassetteNames()
	if err != nil {
		return err
	}
	all := make([]listedCassette, len(names))
	for i, name := range names {
		all[i] = cassetteEntry(lib, name)
	}
	if json {
		return printJSON(std.out, map[string]any{"library": lib.Dir, "cassettes": all})
	}
	if len(all) == 0 {
		_, err := visible.Fprintf(std.err, "tapedeck: no cassettes in %s; make one with: tapedeck cassette record -- CMD\n", lib.Dir)
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for i := range all {
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", all[i].row()...)
	}
	return w.Flush()
}

func cassetteEntry(lib *library.Library, name string) listedCassette {
	out := listedCassette{ID: name}
	dir, err := lib.Cassette(name)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Path = dir
	r, err := cassette.Open(dir, &cassette.OpenOptions{Lazy: true})
	switch {
	case cassette.Code(err) == cassette.Code(cassette.ErrNoManifest):
		out.State = cassette.StateUnfinished
		return out
	case err != nil:
		out.Error = err.Error()
		return out
	}
	defer r.Close()
	m := r.Manifest()
	out.State, out.RecordedAt, out.Argv = r.State(), m.Provenance.RecordedAt, m.Command.Argv
	if f := r.Final(); f != nil {
		out.DurationMS, out.Exit = f.DurationMS, f.Exit
	}
	return out
}

// row is what stands in the columns.
func (l *listedCassette) row() []any {
	switch {
	case l.Error != "":
		return []any{l.ID, "", "", l.Error}
	case l.State == cassette.StateUnfinished:
		return []any{l.ID, "", "unfinished", ""}
	}
	return []any{l.ID, ms(l.DurationMS), exitText(l.Exit), visible.Command(l.Argv)}
}
