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
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

type sessionShowOptions struct {
	turns               string
	kinds               []string
	category, primitive string
	json                bool

	filter sessionlog.Filter
}

func newSessionShowCommand(std streams) *cobra.Command {
	var o sessionShowOptions
	cmd := withHelp("session show", &cobra.Command{
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return runSessionShow(cmd.Context(), &o, args[0], std) },
	})
	f := cmd.Flags()
	f.StringVar(&o.turns, "turn", "", "only events of this `turn`, or of a range: 3, 2..5, 2.. or ..5")
	f.StringSliceVar(&o.kinds, "kind", nil, "only events of this `kind`, as in tool_requested (repeatable, or with commas)")
	f.StringVar(&o.category, "category", "", "only events of this `category`: "+strings.Join(names(sessionlog.Categories()), ", "))
	f.StringVar(&o.primitive, "primitive", "", "only events of this `primitive`: "+strings.Join(names(sessionlog.Primitives()), ", "))
	f.BoolVar(&o.json, "json", false, "as JSON")
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

func (o *sessionShowOptions) parse() (err error) {
	var errs []error
	if o.turns != "" {
		o.filter.Turns, err = sessionlog.ParseTurns(o.turns)
		errs = append(errs, prefixedError("--turn", err))
	}
	if o.category != "" {
		o.filter.Category, err = sessionlog.ParseCategory(o.category)
		errs = append(errs, prefixedError("--category", err))
	}
	if o.primitive != "" {
		o.filter.Primitive, err = sessionlog.ParsePrimitive(o.primitive)
		errs = append(errs, prefixedError("--primitive", err))
	}
	return errors.Join(errs...)
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
	return o.turns != "" || len(o.kinds) > 0 || o.category != "" || o.primitive != ""
}

func runSessionShow(ctx context.Context, o *sessionShowOptions, name string, std streams) error {
	if err := o.parse(); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json || isTerminal(std.out))
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	show := writeEvents
	if o.json {
		show = writeEventsJSON
	}
	found, err := show(std.out, log.Reader, o)
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	log.tell(std)
	if found == 0 && o.narrowed() {
		return errors.New("no event fits; `tapedeck session show FILE` lists their turns and kinds")
	}
	if found == 0 {
		visible.Fprintf(std.err, "tapedeck: %s: no event; a program that called no model has none\n", log.name)
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
		line, err := marshal(&v)
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
