package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

type sessionSnapshotOptions struct {
	at    int
	atSet bool
	json  bool
}

func newSessionSnapshotCommand(std streams) *cobra.Command {
	var o sessionSnapshotOptions
	cmd := withHelp("session snapshot", &cobra.Command{
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.atSet = cmd.Flags().Changed("at")
			return runSessionSnapshot(cmd.Context(), &o, args[0], std)
		},
	})
	cmd.Flags().IntVar(&o.at, "at", 0, "the state at the end of this `turn`")
	cmd.Flags().BoolVar(&o.json, "json", false, "as JSON")
	return cmd
}

func runSessionSnapshot(ctx context.Context, o *sessionSnapshotOptions, name string, std streams) error {
	if o.atSet && o.at < 0 {
		return errors.New("--at takes the number of a turn, from 0 for what stands before the first")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	var seen sessionlog.FoldSeen
	fold := &sessionlog.FoldOptions{Seen: &seen}
	if o.atSet {
		fold.At = &o.at
	}
	snap, err := sessionlog.SnapshotOf(log.Reader, fold)
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	if o.json {
		err = printJSON(std.out, snap)
	} else {
		err = writeSnapshot(std.out, log.name, snap, &seen)
	}
	log.tell(std)
	if o.atSet && !seen.More && seen.LastTurn < o.at {
		visible.Fprintf(std.err, "tapedeck: the log ends with turn %d, before turn %d: this is the whole of it\n", seen.LastTurn, o.at)
	}
	return err
}

func writeSnapshot(out io.Writer, name string, s *sessionlog.Snapshot, seen *sessionlog.FoldSeen) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	visible.Fprintf(w, "log\t%s: %s, up to turn %d\n", name, plural(seen.Events, "event", "events"), seen.LastTurn)
	if l := s.LastSuspend; l != nil {
		visible.Fprintf(w, "last suspended\tturn %s: %s%s\n", string(l.Turn), orNone(l.Reason), waitsFor(l.PendingCalls))
	} else {
		visible.Fprintf(w, "last suspended\tnever\n")
	}
	if s.LastResumedTurn != nil {
		visible.Fprintf(w, "last resumed\tturn %s\n", string(*s.LastResumedTurn))
	}
	writeSnapshotLists(w, s)
	visible.Fprintf(w, "memory paged\t%d out, %d in\n", s.PageOutCount, s.PageInCount)
	visible.Fprintf(w, "tools gated\t%d\n", s.ToolGatedCount)
	visible.Fprintf(w, "results spooled\t%d\n", s.SpoolCount)
	visible.Fprintf(w, "long-term memory\t%d written, %d queried, %d retrieved, %d refused\n", s.MemoryWrittenCount, s.MemoryQueriedCount,
		s.MemoryRetrievalResultCount, s.MemoryValidationFailCount)
	return w.Flush()
}

// maxListed is how many entries of one list are shown to people.
const maxListed = 50

func writeSnapshotLists(w io.Writer, s *sessionlog.Snapshot) {
	writeList(w, "agents", s.ProcessByAgent, func(p sessionlog.Process) string {
		return fmt.Sprintf("%s: %s since turn %s%s", orNone(p.AgentID), orNone(p.State), p.Turn, unless(p.ParentSessionID == "", ", of "+p.ParentSessionID))
	})
	writeList(w, "budgets exceeded", s.BudgetExceeded, func(e sessionlog.Exceeded) string {
		return fmt.Sprintf("turn %s: %s%s%s", e.Turn, orNone(e.Budget), of("operation", e.OperationID), of("reservation", e.ReservationID))
	})
	writeList(w, "budget used", s.BudgetUsageReported, func(u sessionlog.Usage) string {
		return fmt.Sprintf("turn %s: %s tokens, %s subagents, %s rounds, operation %s", u.Turn, u.Tokens, u.Subagents, u.Rounds, orNone(u.OperationID))
	})
	writeList(w, "cancelled", s.Cancellations, func(c sessionlog.Cancellation) string {
		return fmt.Sprintf("turn %s: operation %s, %s%s", c.Turn, orNone(c.OperationID), orNone(c.Reason), waitsFor(c.PendingCallIDs))
	})
	writeList(w, "signals", s.Signals, func(g sessionlog.Signal) string {
		return fmt.Sprintf("turn %s: %s %s, queue of %s%s", g.Turn, orNone(g.SignalID), orNone(g.Disposition), g.QueueDepth, of("operation", g.OperationID))
	})
}

// writeList writes a list, an entry a row, where it has any.
func writeList[T any](w io.Writer, name string, list []T, text func(T) string) {
	for i, v := range list {
		if i == maxListed {
			visible.Fprintf(w, "\tand %d more: --json has them\n", len(list)-i)
			return
		}
		visible.Fprintf(w, "%s\t%s\n", name, text(v))
		name = ""
	}
}

func of(what string, id *string) string {
	if id == nil {
		return ""
	}
	return fmt.Sprintf(", %s %s", what, orNone(*id))
}

func unless(not bool, s string) string {
	if not {
		return ""
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func waitsFor(calls []string) string {
	if len(calls) == 0 {
		return ""
	}
	return ", open: " + strings.Join(calls, ", ")
}
