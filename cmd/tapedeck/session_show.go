package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

type sessionShowOptions struct {
	kinds  []string
	filter sessionlog.Filter
}

func newSessionShowCommand(std *console) *cobra.Command {
	var o sessionShowOptions
	cmd := command("session show", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error { return runSessionShow(cmd.Context(), &o, args[0], std) }))
	cmd.ValidArgsFunction = sessionNames
	f := cmd.Flags()
	parsedFlag(f, &o.filter.Turns, "turn", "", "only events of this `turn`, or of a range: 3, 2..5, 2.. or ..5", sessionlog.ParseTurns)
	f.StringSliceVar(&o.kinds, "kind", nil, "only events of this `kind`, as in tool_requested (repeatable, or with commas)")
	parsedFlag(f, &o.filter.Category, "category", "", "only events of this `category`: "+strings.Join(names(sessionlog.Categories()), ", "), sessionlog.ParseCategory)
	parsedFlag(f, &o.filter.Primitive, "primitive", "", "only events of this `primitive`: "+strings.Join(names(sessionlog.Primitives()), ", "), sessionlog.ParsePrimitive)
	std.jsonFlag(cmd, "as JSON")
	completeFlag(cmd, "category", names(sessionlog.Categories())...)
	completeFlag(cmd, "primitive", names(sessionlog.Primitives())...)
	completeFlag(cmd, "kind", names(sessionlog.Kinds())...)
	return cmd
}

func names[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

func prefixedError(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (o *sessionShowOptions) wants(e *sessionlog.Entry) bool {
	return o.filter.Wants(e) && (len(o.kinds) == 0 || slices.Contains(o.kinds, string(e.Kind)))
}

// narrowed reports whether anything was asked for, so that finding nothing is an error.
func (o *sessionShowOptions) narrowed() bool {
	return len(o.kinds) > 0 || o.filter != sessionlog.Filter{}
}

func runSessionShow(ctx context.Context, o *sessionShowOptions, name string, std *console) error {
	p := newProgress(std.err)
	if std.json || isTerminal(std.out) {
		p = nil
	}
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	show := writeEvents
	if std.json {
		show = writeEventsJSON
	}
	found, err := show(std.out, log.Reader, o)
	p.end()
	if err != nil {
		return err
	}
	log.tell(std)
	if found == 0 && o.narrowed() {
		return errors.New("no event fits; `tapedeck session show FILE` lists their turns and kinds")
	}
	if found == 0 {
		std.say("%s: no event; a program that called no model has none", log.name)
	}
	return nil
}

func writeEvents(out io.Writer, log *sessionlog.Reader, o *sessionShowOptions) (found int, err error) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for e, err := range log.Entries() {
		if err != nil {
			return found, errors.Join(w.Flush(), err)
		}
		if !o.wants(e) {
			continue
		}
		turn := "-"
		if e.HasTurn {
			turn = strconv.Itoa(e.Turn)
		}
		_, text := sessionlog.Summarize(e.EventRaw())
		visible.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", e.Line, turn, string(e.Kind.Category()), string(e.Kind), text)
		if found++; found%flushEvery == 0 {
			if err := w.Flush(); err != nil {
				return found, err
			}
		}
	}
	return found, w.Flush()
}

// shownEvent is an event of session show --json.
type shownEvent struct {
	Line      int                  `json:"line"`
	Seq       *uint64              `json:"seq,omitempty"`
	Turn      *int                 `json:"turn,omitempty"`
	Kind      sessionlog.Kind      `json:"kind"`
	Category  sessionlog.Category  `json:"category"`
	Primitive sessionlog.Primitive `json:"primitive"`
	Event     json.RawMessage      `json:"event"`
}

// writeEventsJSON prints {"version":1,"events":[…]}, an event at a time.
func writeEventsJSON(out io.Writer, log *sessionlog.Reader, o *sessionShowOptions) (found int, err error) {
	if err := raw(out, `{"version":%d,"events":[`, jsonVersion); err != nil {
		return 0, err
	}
	sep := "\n"
	for e, err := range log.Entries() {
		if err != nil {
			return found, err
		}
		if !o.wants(e) {
			continue
		}
		v := shownEvent{Line: e.Line, Kind: e.Kind, Category: e.Kind.Category(), Primitive: e.Kind.Primitive(), Event: e.EventRaw()}
		if e.HasSeq {
			v.Seq = &e.Seq
		}
		if e.HasTurn {
			v.Turn = &e.Turn
		}
		line, err := jsonscan.Marshal(&v)
		if err != nil {
			return found, err
		}
		if err := raw(out, "%s%s", sep, line); err != nil {
			return found, err
		}
		sep = ",\n"
		found++
	}
	return found, raw(out, "\n]}\n")
}

type sessionSnapshotOptions struct {
	at    int
	atSet bool
}

func newSessionSnapshotCommand(std *console) *cobra.Command {
	var o sessionSnapshotOptions
	cmd := command("session snapshot", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		o.atSet = cmd.Flags().Changed("at")
		return runSessionSnapshot(cmd.Context(), &o, args[0], std)
	}))
	cmd.ValidArgsFunction = sessionNames
	cmd.Flags().IntVar(&o.at, "at", 0, "the state at the end of this `turn`")
	std.jsonFlag(cmd, "as JSON")
	return cmd
}

func runSessionSnapshot(ctx context.Context, o *sessionSnapshotOptions, name string, std *console) error {
	if o.atSet && o.at < 0 {
		return errors.New("--at takes the number of a turn, from 0 for what stands before the first")
	}
	p := std.progress()
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	var seen sessionlog.FoldSeen
	var odd oddities
	fold := &sessionlog.FoldOptions{Seen: &seen, Odd: odd.add}
	if o.atSet {
		fold.At = &o.at
	}
	snap, err := sessionlog.SnapshotOf(log.Reader, fold)
	p.end()
	if err != nil {
		return err
	}
	if std.json {
		err = printJSON(std.out, snap)
	} else {
		err = writeSnapshot(std.out, log.name, snap, &seen)
	}
	log.tell(std)
	odd.tell(std.err)
	if o.atSet && !seen.More && seen.LastTurn < o.at {
		std.say("the log ends with turn %d, before turn %d: this is the whole of it", seen.LastTurn, o.at)
	}
	return err
}

// oddities are the events of a log that were read without one of their fields.
type oddities struct {
	shown []string
	more  int
}

func (o *oddities) add(e *sessionlog.LoadError) {
	if len(o.shown) == maxListed {
		o.more++
		return
	}
	o.shown = append(o.shown, e.Error())
}

func (o *oddities) tell(w io.Writer) {
	for _, odd := range o.shown {
		visible.Fprintf(w, "tapedeck: %s: the snapshot is without that field\n", odd)
	}
	if o.more > 0 {
		visible.Fprintf(w, "tapedeck: so it is of %d more events\n", o.more)
	}
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
