package main

import (
	"cmp"
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
	annotations.Annotation
	until     uint64
	kind, fix string
	links     []string
}

func newAnnotateCommand(std *console) *cobra.Command {
	var o annotateOptions
	cmd := command("annotate", "TAPE|REC", func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"event", "kind", "evidence"} {
			if !cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is missing (tapedeck annotate --help has examples)", name)
			}
		}
		return runAnnotate(&o, args[0], cmd.Flags().Changed("until"), std)
	})
	f := cmd.Flags()
	f.Uint64Var(&o.EventID, "event", 0, "`number` of the event, as show has it")
	f.Uint64Var(&o.until, "until", 0, "`number` of the last event that the note is about, where it is about several")
	f.StringVar(&o.kind, "kind", "", "what the note says of the event")
	f.StringVar(&o.Evidence, "evidence", "", "`text`: why")
	f.StringVar(&o.HypothesisStatus, "status", "", "of a hypothesis")
	f.StringVar(&o.FrictionKind, "friction", "", "`kind` of a friction, in a word of your own")
	f.StringVar(&o.fix, "fix", "", "`JSON` of what should have happened")
	f.StringArrayVar(&o.links, "link", nil, "`LABEL=URL`, or a reference without a URL (again for more)")
	f.StringVar(&o.Author.ID, "author", "", "who says it (default: your login name)")
	f.StringVar(&o.Author.Kind, "author-kind", "human", "human, agent or another word")
	f.StringVar(&o.ID, "id", "", "of the note (default: the next ann_NNN)")
	std.jsonFlag(cmd, "the note as JSON")
	completeFlag(cmd, "kind", names(annotations.Kinds())...)
	completeFlag(cmd, "status", annotations.Statuses()...)
	cmd.AddCommand(newAnnotateListCommand(std), newAnnotateCheckCommand(std))
	return cmd
}

func runAnnotate(o *annotateOptions, name string, span bool, std *console) error {
	path, err := tapeOf(name)
	if err != nil {
		return err
	}
	if err := o.fill(span); err != nil {
		return err
	}
	a := &o.Annotation
	if err := annotations.Append(path, recording.Producer, a); err != nil {
		return err
	}
	if a.Known() == annotations.KindUnknown {
		std.say("the kind %q is kept as it stands, and reads as unknown: the known ones are %s", a.Kind, strings.Join(names(annotations.Kinds()), ", "))
	}
	if std.json {
		return printJSON(std.out, map[string]any{"annotation": a, "sidecar": path + annotations.Suffix})
	}
	_, err = visible.Fprintf(std.out, "event %d: %s\n", a.EventID, a.String())
	return err
}

// fill sets what flags say in words of their own, and takes the secrets out.
func (o *annotateOptions) fill(span bool) error {
	o.Kind, o.Author.ID, o.Author.Surface = annotations.Kind(o.kind), cmp.Or(o.Author.ID, login()), "cli"
	if o.Kind == annotations.Hypothesis && o.HypothesisStatus == "" {
		o.HypothesisStatus = annotations.Statuses()[0]
	}
	if span {
		o.Span = &annotations.Span{StartEventID: o.EventID, EndEventID: o.until}
	}
	hide := secretsOut()
	o.Evidence = hide(o.Evidence)
	if o.fix != "" {
		o.SuggestedFix = json.RawMessage(hide(o.fix))
		if !json.Valid(o.SuggestedFix) {
			return fmt.Errorf("--fix %s: it is no JSON; a text stands in quotes: '\"%s\"'", o.fix, o.fix)
		}
	}
	for _, text := range o.links {
		label, url, ok := strings.Cut(hide(text), "=")
		if !ok {
			o.Links = append(o.Links, annotations.Link{Reference: label})
			continue
		}
		o.Links = append(o.Links, annotations.Link{Label: label, URL: url})
	}
	return nil
}

// secretsOut returns what takes secrets out of a text.
func secretsOut() func(string) string {
	s := bare.NewScrubber(&scrub.Options{Env: os.Environ()})
	return func(text string) string {
		b, _ := s.Bytes([]byte(text))
		return string(b)
	}
}

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

func newAnnotateListCommand(std *console) *cobra.Command {
	cmd := command("annotate list", "TAPE|REC", func(_ *cobra.Command, args []string) error { return runAnnotateList(args[0], std) })
	std.jsonFlag(cmd, "as JSON")
	return cmd
}

func runAnnotateList(name string, std *console) error {
	path, s, err := sidecarOf(name)
	if err != nil {
		return err
	}
	if s == nil {
		s = new(annotations.Sidecar)
	}
	if std.json {
		return printJSON(std.out, map[string]any{"tape": path, "annotations": append([]*annotations.Annotation{}, s.Annotations...)})
	}
	if len(s.Annotations) == 0 {
		return std.say("nobody noted anything about %s", path)
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

func newAnnotateCheckCommand(std *console) *cobra.Command {
	cmd := command("annotate check", "TAPE|REC", func(_ *cobra.Command, args []string) error { return runAnnotateCheck(args[0], std) })
	std.jsonFlag(cmd, "the problems as JSON")
	return cmd
}

func runAnnotateCheck(name string, std *console) error {
	path, s, err := sidecarOf(name)
	if err != nil {
		return err
	}
	if s == nil {
		if std.json {
			return printJSON(std.out, map[string]any{"tape": path, "annotations": 0, "problems": []string{}})
		}
		return std.say("nobody noted anything about %s", path)
	}
	problems, err := annotations.Validate(s, path)
	if err != nil {
		return err
	}
	found := map[string]any{"tape": path, "annotations": len(s.Annotations), "problems": append([]annotations.Problem{}, problems...)}
	return std.verdict(len(problems) == 0, found, func() error { return printProblems(problems, s, path, std) })
}

func printProblems(problems []annotations.Problem, s *annotations.Sidecar, path string, std *console) error {
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
