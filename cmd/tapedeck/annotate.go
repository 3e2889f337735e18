package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

type annotateOptions struct {
	event, until                     uint64
	kind, evidence, status, friction string
	fix, author, authorKind, id      string
	links                            []string
	json                             bool
}

const annotateLong = `Adds a note about one event, the record of that number, to the sidecar of a tape or of a recording's tape: TAPE.annotations.jsonl.
The tape itself, its seal and every verdict stay as they are; show, diff and their --json put the note beside the event.

--kind is correct, incorrect, alternative, note, marker, mute, hypothesis, friction or crystallize_here; any other is kept and reads as
unknown. A hypothesis has a --status (active, verifying, confirmed, disproven, stale; active where none is given), a friction a
--friction. Secrets that are known by their shape or by this environment do not reach the file.

Exit status: 0 done; 1 the note would not hold (no such event, an id that is there already, a span that ends before it begins), or
the sidecar is of another tape.`

func newAnnotateCommand(std streams) *cobra.Command {
	var o annotateOptions
	cmd := &cobra.Command{
		Use:   "annotate TAPE|REC --event N --kind KIND --evidence TEXT",
		Short: "Note something about an event of a tape; list and check such notes",
		Long:  annotateLong,
		Example: `  tapedeck annotate last --event 12 --kind incorrect --evidence 'it answered before it had read the file'
  tapedeck annotate run.tape --event 3 --until 9 --kind hypothesis --evidence 'the clock was read twice' --link 'issue=https://example.com/7'
  tapedeck annotate last --event 4 --kind alternative --evidence 'ask for the list first' --fix '{"tool":"list_directory"}'
  tapedeck annotate list last
  tapedeck annotate check run.tape`,
		Args:              takes("TAPE|REC"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"event", "kind", "evidence"} {
				if !cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is missing (tapedeck annotate --help has examples)", name)
				}
			}
			return runAnnotate(&o, args[0], cmd.Flags().Changed("until"), std)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.event, "event", 0, "`number` of the event, as show has it")
	f.Uint64Var(&o.until, "until", 0, "`number` of the last event that the note is about, where it is about several")
	f.StringVar(&o.kind, "kind", "", "what the note says of the event")
	f.StringVar(&o.evidence, "evidence", "", "`text`: why")
	f.StringVar(&o.status, "status", "", "of a hypothesis")
	f.StringVar(&o.friction, "friction", "", "`kind` of a friction, in a word of your own")
	f.StringVar(&o.fix, "fix", "", "`JSON` of what should have happened")
	f.StringArrayVar(&o.links, "link", nil, "`LABEL=URL`, or a reference without a URL (again for more)")
	f.StringVar(&o.author, "author", "", "who says it (default: your login name)")
	f.StringVar(&o.authorKind, "author-kind", "human", "human, agent or another word")
	f.StringVar(&o.id, "id", "", "of the note (default: the next ann_NNN)")
	f.BoolVar(&o.json, "json", false, "the note as JSON")
	var kinds []string
	for _, k := range annotations.Kinds() {
		kinds = append(kinds, string(k))
	}
	completeFlag(cmd, "kind", kinds...)
	completeFlag(cmd, "status", annotations.Statuses()...)
	cmd.AddCommand(newAnnotateListCommand(std), newAnnotateCheckCommand(std))
	return cmd
}

func runAnnotate(o *annotateOptions, name string, span bool, std streams) error {
	path, err := tapeOf(name)
	if err != nil {
		return err
	}
	a, err := o.annotation(span)
	if err != nil {
		return err
	}
	if err := annotations.Append(path, recording.Producer, a); err != nil {
		return err
	}
	if a.Known() == annotations.KindUnknown {
		visible.Fprintf(std.err, "tapedeck: the kind %q is kept as it stands, and reads as unknown: the known ones are %s\n", a.Kind, knownKinds())
	}
	if o.json {
		return printJSON(std.out, map[string]any{"annotation": a, "sidecar": path + annotations.Suffix})
	}
	_, err = visible.Fprintf(std.out, "event %d: %s\n", a.EventID, a.String())
	return err
}

func knownKinds() string {
	var names []string
	for _, k := range annotations.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// annotation is what the flags say, with the secrets out of it.
func (o *annotateOptions) annotation(span bool) (*annotations.Annotation, error) {
	a := &annotations.Annotation{
		ID: o.id, EventID: o.event, Kind: annotations.Kind(o.kind), HypothesisStatus: o.status, FrictionKind: o.friction,
		Author: annotations.Author{ID: cmp.Or(o.author, login()), Kind: o.authorKind, Surface: "cli"},
	}
	if a.Kind == annotations.Hypothesis && a.HypothesisStatus == "" {
		a.HypothesisStatus = annotations.Statuses()[0]
	}
	if span {
		a.Span = &annotations.Span{StartEventID: o.event, EndEventID: o.until}
	}
	hide := secretsOut()
	a.Evidence = hide(o.evidence)
	if o.fix != "" {
		a.SuggestedFix = json.RawMessage(hide(o.fix))
		if !json.Valid(a.SuggestedFix) {
			return nil, fmt.Errorf("--fix %s: it is no JSON; a text stands in quotes: '\"%s\"'", o.fix, o.fix)
		}
	}
	for _, text := range o.links {
		label, url, ok := strings.Cut(hide(text), "=")
		if !ok {
			a.Links = append(a.Links, annotations.Link{Reference: label})
			continue
		}
		a.Links = append(a.Links, annotations.Link{Label: label, URL: url})
	}
	return a, nil
}

// secretsOut returns what takes secrets out of a text.
func secretsOut() func(string) string {
	s := bare.NewScrubber(&scrub.Options{Env: os.Environ()})
	return func(text string) string {
		b, _ := s.Bytes([]byte(text))
		return string(b)
	}
}

// login is the name of who runs the command.
func login() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "unknown")
}

// tapeOf returns the path of a bare tape, or of the tape of the recording that name stands for.
func tapeOf(name string) (string, error) {
	path, err := tapeOrRecording(name)
	if err != nil {
		return "", err
	}
	if err := notForCassette(path); err != nil {
		return "", err
	}
	rec, err := recording.OpenIfRecording(path)
	if err != nil || rec == nil {
		return path, err
	}
	return rec.TapePath(), nil
}

func newAnnotateListCommand(std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "list TAPE|REC",
		Short:             "List the notes about a tape",
		Long:              "One line a note, in the order in which they were made.\n\nExit status: 0 done, also where there is none, which is said on stderr; 1 the notes cannot be read.",
		Example:           "  tapedeck annotate list last\n  tapedeck annotate list run.tape --json",
		Args:              takes("TAPE|REC"),
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runAnnotateList(asJSON, args[0], std) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func runAnnotateList(asJSON bool, name string, std streams) error {
	path, s, err := sidecarOf(name)
	if err != nil {
		return err
	}
	if asJSON {
		list := []*annotations.Annotation{}
		if s != nil {
			list = append(list, s.Annotations...)
		}
		return printJSON(std.out, map[string]any{"tape": path, "annotations": list})
	}
	if s == nil || len(s.Annotations) == 0 {
		_, err := visible.Fprintln(std.err, "tapedeck: nobody noted anything about", path)
		return err
	}
	for _, a := range s.Annotations {
		if _, err := visible.Fprintf(std.out, "event %d: %s\n", a.EventID, a.String()); err != nil {
			return err
		}
	}
	return nil
}

// sidecarOf reads the notes about a tape; nil where there are none.
func sidecarOf(name string) (path string, s *annotations.Sidecar, err error) {
	if path, err = tapeOf(name); err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return "", nil, err
	}
	s, err = annotations.Open(path)
	return path, s, err
}

func newAnnotateCheckCommand(std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check TAPE|REC",
		Short: "Check the notes about a tape against it",
		Long: `Reports events that the tape lacks, ids that stand twice, a tape that is no longer the one that was annotated, required fields
that are missing, spans that do not fit, values that are none of those a field can have, and a last line that a crash left torn.

Exit status: 0 all holds, also where there is no note, which is said on stderr; 2 something does not; 1 the sidecar or the tape cannot
be read.`,
		Example:           "  tapedeck annotate check last\n  tapedeck annotate check run.tape --json",
		Args:              takes("TAPE|REC"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runAnnotateCheck(cmd.Context(), asJSON, args[0], std)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the problems as JSON")
	return cmd
}

func runAnnotateCheck(_ context.Context, asJSON bool, name string, std streams) error {
	path, s, err := sidecarOf(name)
	if err != nil {
		return err
	}
	if s == nil {
		if asJSON {
			return printProblems(nil, &annotations.Sidecar{}, path, asJSON, std)
		}
		_, err := visible.Fprintln(std.err, "tapedeck: nobody noted anything about", path)
		return err
	}
	problems, err := annotations.Validate(s, path)
	if err != nil {
		return err
	}
	if err := printProblems(problems, s, path, asJSON, std); err != nil {
		return err
	}
	if len(problems) > 0 {
		return &statusError{status: statusDiverged}
	}
	return nil
}

func printProblems(problems []annotations.Problem, s *annotations.Sidecar, path string, asJSON bool, std streams) error {
	if asJSON {
		if problems == nil {
			problems = []annotations.Problem{}
		}
		return printJSON(std.out, map[string]any{"tape": path, "annotations": len(s.Annotations), "problems": problems})
	}
	for _, p := range problems {
		at := path + annotations.Suffix
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", at, p.Line)
		}
		if _, err := visible.Fprintf(std.out, "%s: %s: %s\n", at, p.Code, p.Message); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return nil
	}
	_, err := visible.Fprintf(std.out, "holds: %s\n", plural(len(s.Annotations), "annotation", "annotations"))
	return err
}
