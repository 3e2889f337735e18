package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newCassetteCommand(std *console) *cobra.Command {
	return commandGroup("cassette",
		newCassetteRecordCommand(std), newCassetteListCommand(std), newCassettePlayCommand(std), newCassetteInfoCommand(std), newCassetteFramesCommand(std),
		newCassetteCheckCommand(std), newCassetteExportCommand(std), newCassetteImportCommand(std), newCassetteScrubCommand(std),
	)
}

// cassettePath is the directory of what a CASSETTE argument stands for.
func cassettePath(name string) (string, error) {
	lib, err := openLibrary()
	if err != nil {
		return "", err
	}
	dir, err := lib.Cassette(name)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", err
	case !st.IsDir() && library.LooksPacked(dir):
		return "", fmt.Errorf("%s is a packed recording: tapedeck unpack %[1]s first", name)
	case !st.IsDir():
		return "", fmt.Errorf("%s is a file, and a cassette is a directory: tapedeck cassette import makes one of recordings of asciinema, script and ttyrec", name)
	case !isCassette(dir):
		return "", fmt.Errorf("%s is no cassette: it has no %s (tapedeck cassette record makes one)", name, cassette.ManifestFile)
	}
	return dir, nil
}

// isCassette reports whether a cassette, or what is left of one, is in dir.
func isCassette(dir string) bool {
	for _, name := range []string{cassette.ManifestFile, cassette.OutputFile, cassette.ChunksFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// openCassette opens what a CASSETTE argument stands for. Its output is held against the digests before any of it is shown, the rest
// is checked while it is read. Of a damaged one that partial opens it is said what ends it.
func openCassette(name string, partial bool, std *console) (*cassette.Reader, error) {
	dir, err := cassettePath(name)
	if err != nil {
		return nil, err
	}
	r, err := openSound(dir, partial, std)
	if err != nil {
		return nil, err
	}
	if why := r.Unfinished(); why != nil && !errors.Is(why, cassette.ErrNoManifest) {
		std.say("damaged: %s; what is whole before that is taken", firstLine(why))
	}
	return r, nil
}

// openSound opens the cassette in dir, whose output is what its digests say, or with partial as far as it is.
func openSound(dir string, partial bool, std *console) (*cassette.Reader, error) {
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: partial, Lazy: !partial})
	if err == nil {
		stop := newProgress(std.err).busy("checking digests")
		err = r.CheckOutput()
		stop()
		if err != nil {
			r.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shortPath(dir), err)
	}
	return r, nil
}

// firstLine is the first of the errors that err joins.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// finishedOnly says that dir holds what --partial does not open for this, where that is why err came.
func finishedOnly(dir string, err error, only string) error {
	if !errors.Is(err, cassette.ErrNoManifest) {
		return err
	}
	return fmt.Errorf("%s is unfinished: its recorder is still at work or came to no end, and %s", shortPath(dir), only)
}

// partialHelp is the help of --partial.
const partialHelp = "open one whose recorder came to no end, up to its last whole chunk"

// hintForCassette is the next step after err, "" where it is none of a cassette.
func hintForCassette(err error) string {
	var locked *cassette.LockedError
	switch {
	case errors.Is(err, cassette.ErrNoManifest):
		return "its recorder is still at work or came to no end: --partial opens it up to its last whole chunk"
	case errors.Is(err, cassette.ErrDigest), errors.Is(err, cassette.ErrChunkDigest), errors.Is(err, cassette.ErrChunkRange):
		return "this is not what was recorded: `tapedeck verify` says all that is wrong, --partial takes what is whole before it"
	case errors.Is(err, cassette.ErrExists):
		return "name a directory that is empty, or that is not there yet"
	case errors.As(err, &locked):
		return "wait for it, or record for another --account"
	}
	return ""
}

// clockTime is d as people read it: 0:01.250, 1:02:03.004.
func clockTime(d time.Duration) string {
	ms := d.Milliseconds()
	s := fmt.Sprintf("%d:%02d.%03d", ms/60000%60, ms/1000%60, ms%1000)
	if h := ms / 3600000; h > 0 {
		s = fmt.Sprintf("%d:%02d:%02d.%03d", h, ms/60000%60, ms/1000%60, ms%1000)
	}
	return s
}

func exitText(e *cassette.Exit) string {
	switch {
	case e == nil:
		return "not known"
	case e.Signaled:
		return "ended by " + e.Signal
	case e.Exited:
		return fmt.Sprintf("exit %d", e.Code)
	}
	if s := strings.Trim(string(e.Err), `"`); s != "" && s != "null" {
		return s
	}
	return "not known"
}

// ms is that many milliseconds as people read them.
func ms(n int64) string { return clockTime(cassette.Timed{TMS: n}.Time()) }

func newCassetteListCommand(std *console) *cobra.Command {
	cmd := command("cassette list", "", func(*cobra.Command, []string) error { return runCassetteList(std) })
	cmd.SuggestFor = []string{"ls"}
	std.jsonFlag(cmd, "the list as JSON")
	return cmd
}

// listedCassette is one entry of cassette list --json.
type listedCassette struct {
	ID         string         `json:"id"`
	Path       string         `json:"path"`
	State      cassette.State `json:"state"`
	RecordedAt string         `json:"recorded_at"`
	Argv       []string       `json:"argv"`
	DurationMS int64          `json:"duration_ms"`
	Exit       *cassette.Exit `json:"exit"`
	Error      string         `json:"error"`
}

func runCassetteList(std *console) error {
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
	if std.json {
		return printJSON(std.out, map[string]any{"library": lib.Dir, "cassettes": all})
	}
	if len(all) == 0 {
		return std.say("no cassettes in %s; make one with: tapedeck cassette record -- CMD", lib.Dir)
	}
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for i := range all {
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", all[i].row()...)
	}
	return w.Flush()
}

func cassetteEntry(lib *library.Library, name string) listedCassette {
	out := listedCassette{ID: name, Argv: []string{}}
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
	out.State, out.RecordedAt, out.Argv = r.State(), m.Provenance.RecordedAt, nonNil(m.Command.Argv)
	if f := r.Final(); f != nil {
		out.DurationMS, out.Exit = f.DurationMS, f.Exit
	}
	return out
}

func (l *listedCassette) row() []any {
	switch {
	case l.Error != "":
		return []any{l.ID, "", "", l.Error}
	case l.State == cassette.StateUnfinished:
		return []any{l.ID, "", "unfinished", ""}
	}
	return []any{l.ID, ms(l.DurationMS), exitText(l.Exit), visible.Command(l.Argv)}
}

func newCassetteInfoCommand(std *console) *cobra.Command {
	var partial bool
	cmd := command("cassette info", "CASSETTE", func(_ *cobra.Command, args []string) error { return runCassetteInfo(args[0], partial, std) })
	cmd.Flags().BoolVar(&partial, "partial", false, "of a damaged one, what is whole before the damage")
	std.jsonFlag(cmd, "as JSON")
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

func runCassetteInfo(name string, partial bool, std *console) error {
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
	if std.json {
		return printJSON(std.out, info)
	}
	switch {
	case info.State != cassette.StateUnfinished:
	case !errors.Is(r.Unfinished(), cassette.ErrNoManifest):
		std.say("damaged: %s; tapedeck verify %s says all that is wrong", firstLine(r.Unfinished()), name)
	default:
		std.say("unfinished: %s; play, frames and export take it with --partial, up to its last whole chunk", info.Unfinished)
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

// asTexts joins values: a string as its text, anything else as its JSON.
func asTexts(values []json.RawMessage) string {
	texts := make([]string, len(values))
	for i, v := range values {
		if json.Unmarshal(v, &texts[i]) != nil {
			texts[i] = string(v)
		}
	}
	return strings.Join(texts, ", ")
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
	part("models %s", asTexts(c.Models))
	part("reasoning %s", asTexts(c.ReasoningLevels))
	for _, w := range c.Windows {
		part("window %s", string(w))
	}
	part("metadata %s", string(c.Metadata))
	return strings.Join(parts, "; ")
}

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
