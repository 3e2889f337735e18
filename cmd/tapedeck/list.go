package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newListCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("list", &cobra.Command{
		SuggestFor:        []string{"ls"},
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runList(json, std) },
	})
	cmd.Flags().BoolVar(&json, "json", false, "the list as JSON")
	return cmd
}

// listedRecording is one entry of list --json.
type listedRecording struct {
	ID        string             `json:"id"`
	Path      string             `json:"path"`
	State     string             `json:"state,omitempty"`
	Live      bool               `json:"live,omitempty"` // it is being recorded
	StartedAt *time.Time         `json:"started_at,omitempty"`
	Argv      []string           `json:"argv,omitempty"`
	Exit      *recording.Exit    `json:"exit,omitempty"`
	MCP       *recording.MCPSeen `json:"mcp,omitempty"`       // tool servers, where the program talked with some
	Sealed    bool               `json:"sealed"`              // it says so; verify tells whether that holds
	SealedBy  string             `json:"sealed_by,omitempty"` // the name of the key
	Error     string             `json:"error,omitempty"`
}

func runList(json bool, std streams) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	entries, err := lib.List()
	if err != nil {
		return err
	}
	if json {
		out := make([]listedRecording, len(entries))
		for i := range entries {
			out[i] = listed(&entries[i])
		}
		return printJSON(std.out, map[string]any{"library": lib.Dir, "recordings": out})
	}
	if len(entries) == 0 {
		_, err := visible.Fprintf(std.err, "tapedeck: no recordings in %s; make one with: tapedeck record -- CMD\n", lib.Dir)
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for i := range entries {
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", listRow(&entries[i])...)
	}
	return w.Flush()
}

func listed(e *library.Entry) listedRecording {
	l := listedRecording{ID: e.Name, Path: e.Path}
	if e.Err != nil {
		l.Error = e.Err.Error()
		return l
	}
	m := e.Recording.Manifest
	l.State, l.StartedAt, l.Argv, l.Exit = m.State, &m.StartedAt, m.Argv, m.Exit
	l.MCP, l.Sealed = m.MCP, m.Sealed
	l.SealedBy, _ = sealing.SealedBy(e.Recording)
	l.Live = !e.Recording.Finished() && e.Recording.Live() == recording.LiveYes
	return l
}

// listRow is what stands in the columns of one entry.
func listRow(e *library.Entry) []any {
	if e.Err != nil {
		return []any{e.Name, "", "", e.Err.Error()}
	}
	m := e.Recording.Manifest
	end := "unfinished"
	if m.Exit != nil {
		end = fmt.Sprintf("exit %d", m.Exit.Code)
	} else if e.Recording.Live() == recording.LiveYes {
		end = "recording"
	}
	if said := mcpCalls(m.MCP); said != "" {
		end += ", " + said
	}
	switch by, ok := sealing.SealedBy(e.Recording); {
	case !ok:
		end += ", its seal is gone or damaged"
	case by != "":
		end += ", sealed"
	}
	return []any{m.ID, m.StartedAt.Local().Format("2006-01-02 15:04:05"), end, strings.Join(m.Argv, " ")}
}
