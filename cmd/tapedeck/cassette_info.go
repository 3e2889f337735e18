package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newCassetteInfoCommand(std streams) *cobra.Command {
	var json, partial bool
	cmd := withHelp("cassette info", &cobra.Command{
		Args:              takes("CASSETTE"),
		ValidArgsFunction: cassetteNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runCassetteInfo(args[0], json, partial, std) },
	})
	cmd.Flags().BoolVar(&partial, "partial", false, "of a damaged one, what is whole before the damage")
	cmd.Flags().BoolVar(&json, "json", false, "as JSON")
	return cmd
}

// cassetteInfo is what cassette info --json prints.
type cassetteInfo struct {
	Path       string                `json:"path"`
	State      cassette.State        `json:"state"`
	Unfinished string                `json:"unfinished,omitempty"` // why
	ID         string                `json:"id"`
	SHA256     string                `json:"sha256"`
	Harness    cassette.Harness      `json:"harness"`
	Command    cassette.Command      `json:"command"`
	Terminal   cassette.Terminal     `json:"terminal"`
	Timing     cassette.Timing       `json:"timing"`
	Provenance cassette.Provenance   `json:"provenance"`
	Optional   any                   `json:"optional,omitempty"`
	DurationMS int64                 `json:"duration_ms"`
	Exit       *cassette.Exit        `json:"exit"`
	Bytes      int64                 `json:"bytes"`
	Events     map[string]int        `json:"events"`
	Scrub      *cassette.ScrubReport `json:"scrub"`
	Quota      *cassette.Capability  `json:"quota,omitempty"`
	Discovery  *cassette.Capability  `json:"discovery,omitempty"`
}

func runCassetteInfo(name string, json, partial bool, std streams) error {
	dir, err := cassettePath(name)
	if err != nil {
		return err
	}
	r, err := openSound(dir, partial, std)
	if errors.Is(err, cassette.ErrNoManifest) {
		r, err = openSound(dir, true, std)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := infoOf(r)
	if err != nil {
		return err
	}
	if json {
		return printJSON(std.out, info)
	}
	switch {
	case info.State != cassette.StateUnfinished:
	case !errors.Is(r.Unfinished(), cassette.ErrNoManifest):
		visible.Fprintf(std.err, "tapedeck: damaged: %s; tapedeck verify %s says all that is wrong\n", firstLine(r.Unfinished()), name)
	default:
		visible.Fprintf(std.err, "tapedeck: unfinished: %s; play, frames and export take it with --partial, up to its last whole chunk\n", info.Unfinished)
	}
	return info.write(std.out)
}

// infoOf counts the events of r.
func infoOf(r *cassette.Reader) (*cassetteInfo, error) {
	m := r.Manifest()
	out := &cassetteInfo{
		Path: r.Dir(), State: r.State(), ID: m.ID, SHA256: m.ContentDigest.SHA256, Harness: m.Harness, Command: m.Command,
		Terminal: m.Terminal, Timing: m.Timing, Provenance: m.Provenance, Bytes: r.Size(), Scrub: r.ScrubReport(),
		Quota: r.Quota(), Discovery: r.Discovery(),
		Events: map[string]int{"chunk": 0, "input": 0, "resize": 0, "signal": 0, "frame": 0, "service": 0},
	}
	if len(m.Optional) > 0 {
		out.Optional = m.Optional
	}
	if err := r.Unfinished(); errors.Is(err, cassette.ErrNoManifest) {
		out.Unfinished = "its recorder is still at work or came to no end"
	} else if err != nil {
		out.Unfinished = err.Error()
	}
	for e, err := range r.Events(&cassette.EventsOptions{NoBytes: true}) {
		if err != nil {
			return nil, err
		}
		out.DurationMS = max(out.DurationMS, e.TMS)
		out.count(e)
	}
	if f := r.Final(); f != nil {
		out.Exit, out.DurationMS = f.Exit, max(out.DurationMS, f.DurationMS)
	}
	return out, nil
}

func (i *cassetteInfo) count(e *cassette.Event) {
	switch e.Stream {
	case cassette.StreamOutput:
		i.Events["chunk"]++
	case cassette.StreamInput:
		i.Events[e.Input.Kind]++
	case cassette.StreamFrames:
		i.Events["frame"]++
	case cassette.StreamService:
		i.Events["service"]++
	}
}

func (i *cassetteInfo) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	t := i.Terminal
	line := func(key, value string) {
		if value != "" {
			visible.Fprintf(w, "%s\t%s\n", key, value)
		}
	}
	line("cassette", shortPath(i.Path))
	line("id", i.ID)
	line("state", string(i.State))
	line("program", visible.Command(i.Command.Argv))
	line("harness", strings.TrimSpace(i.Harness.Name+" "+i.Harness.BinaryVersion))
	if p := i.Provenance; p.RecordedAt != "" {
		line("recorded", fmt.Sprintf("%s on %s/%s by %s", p.RecordedAt, p.OS, p.Arch, p.RecorderVersion))
	}
	line("terminal", strings.TrimSuffix(fmt.Sprintf("%d columns, %d rows, %s", t.InitialCols, t.InitialRows, t.Term), ", "))
	line("emulator", t.Emulator.Name+" "+t.Emulator.Version)
	duration := ms(i.DurationMS)
	if r := i.Timing.ResolutionMS; r > 0 {
		duration += fmt.Sprintf(", times to %d ms", r)
	}
	line("duration", duration)
	line("output", fmt.Sprintf("%s in %s", size(i.Bytes), plural(i.Events["chunk"], "chunk", "chunks")))
	line("events", i.events())
	line("end", i.end())
	line("secrets", i.secrets())
	line("quota", capability(i.Quota))
	line("discovery", capability(i.Discovery))
	line("sha256", i.SHA256)
	return w.Flush()
}

func (i *cassetteInfo) events() string {
	return fmt.Sprintf("%s, %s, %s, %s, %s", plural(i.Events["frame"], "frame", "frames"), plural(i.Events["input"], "input", "inputs"),
		plural(i.Events["resize"], "resize", "resizes"), plural(i.Events["signal"], "signal", "signals"),
		plural(i.Events["service"], "service event", "service events"))
}

func (i *cassetteInfo) end() string {
	if i.State == cassette.StateUnfinished {
		return "not recorded"
	}
	return exitText(i.Exit)
}

func (i *cassetteInfo) secrets() string {
	if i.Scrub == nil {
		return "no report"
	}
	return secretsOf(i.Scrub)
}

// capability says in one line what evidence there is of what an account or a program could do; "" where there is none.
func capability(c *cassette.Capability) string {
	if c == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%s, by %s", c.Status, c.Source)}
	part := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	part("captured %s", c.CapturedAt)
	part("fresh for %s", strings.Trim(string(c.FreshnessWindow), `"`))
	part("%s when stale", c.StalenessBehavior)
	part("account %s", c.AccountClass)
	part("models %s", strings.Join(c.Models, ", "))
	part("reasoning %s", strings.Join(c.ReasoningLevels, ", "))
	for _, w := range c.Windows {
		part("window %s", string(w))
	}
	part("metadata %s", string(c.Metadata))
	return strings.Join(parts, "; ")
}

// secretsOf says what a scrub report does.
func secretsOf(s *cassette.ScrubReport) string {
	var rules []string
	for _, r := range slices.Sorted(maps.Keys(s.HitCounts)) {
		rules = append(rules, fmt.Sprintf("%s %d", r, s.HitCounts[r]))
	}
	if len(rules) == 0 {
		return masked(0)
	}
	return masked(total(s.HitCounts)) + ": " + strings.Join(rules, ", ")
}
