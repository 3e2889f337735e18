package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func newManCommand(std *console) *cobra.Command {
	cmd := command("man", "DIR", func(cmd *cobra.Command, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		if err := writePages(cmd.Root(), args[0]); err != nil {
			return err
		}
		if std.json {
			return printJSON(std.out, map[string]any{"directory": args[0]})
		}
		return std.say("manual pages written into %s", args[0])
	})
	std.jsonFlag(cmd, "where they lie as JSON")
	return cmd
}

// writePages writes the page of cmd, and those of the commands in it, into dir.
func writePages(cmd *cobra.Command, dir string) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return durable.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), manualPage(cmd), nil)
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage is the page of cmd, in the macros of man(7).
func manualPage(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	var b bytes.Buffer
	visible.Fprintf(&b, ".nh\n.TH \"TAPEDECK\" \"1\" \"%s\" \"tapedeck\" \"Tapedeck\"\n", time.Now().Format("Jan 2006"))
	visible.Fprintf(&b, ".SH NAME\n%s - %s\n", roff(pageName(cmd)), roff(cmd.Short))
	visible.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(cmd.UseLine()))
	visible.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(roff(cmd.Long)))
	manualFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manualFlags(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		visible.Fprintf(&b, ".SH EXAMPLE\n.EX\n%s\n.EE\n", roff(cmd.Example))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, "\\fB"+roff(pageName(cmd.Parent()))+"\\fP(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			also = append(also, "\\fB"+roff(pageName(c))+"\\fP(1)")
		}
	}
	if len(also) > 0 {
		visible.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(also, ", "))
	}
	return b.Bytes()
}

func manualFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	visible.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "\\fB" + roff("--"+f.Name) + "\\fP"
		if f.Shorthand != "" {
			name = "\\fB" + roff("-"+f.Shorthand) + "\\fP, " + name
		}
		if value != "" {
			name += " \\fI" + roff(value) + "\\fP"
		}
		visible.Fprintf(b, ".TP\n%s\n%s\n", name, roff(usage))
	})
}

// roff is text as man(7) shows it: no backslash or minus is a request, and no line one that begins with a point or an apostrophe.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

// paragraphs parts text where lines are empty. What is indented keeps its lines.
func paragraphs(text string) string {
	var out []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(p, "  ") {
			p = ".EX\n" + p + "\n.EE"
		}
		out = append(out, p)
	}
	return strings.Join(out, "\n.PP\n")
}

func newDoctorCommand(std *console) *cobra.Command {
	cmd := command("doctor", "", func(*cobra.Command, []string) error { return runDoctor(std) })
	std.jsonFlag(cmd, "the findings as JSON")
	return cmd
}

func runDoctor(std *console) error {
	d := deck.Diagnose()
	return std.verdict(d.Works, d, func() error { return printDiagnosis(d, std) })
}

func printDiagnosis(d *deck.Diagnosis, std *console) error {
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for _, c := range d.Checks {
		state := "ok"
		switch {
		case !c.OK && c.Evidence:
			state = "less"
		case !c.OK:
			state = "MISSING"
		}
		visible.Fprintf(w, "%s\t%s\t%s\n", state, c.Name, c.Detail)
		if !c.OK && c.Cost != "" {
			visible.Fprintf(w, "\t\t%s\n", c.Cost)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range d.Notes {
		visible.Fprintf(std.out, "note: %s\n", n)
	}
	for _, n := range d.NotHeld {
		visible.Fprintf(std.out, "not held: %s\n", n)
	}
	verdict := "record and replay work here"
	if !d.Works {
		verdict = "record and replay do not work here: see what is MISSING above"
	}
	_, err := visible.Fprintln(std.out, verdict)
	return err
}

func newVersionCommand(std *console) *cobra.Command {
	cmd := command("version", "", func(*cobra.Command, []string) error {
		if std.json {
			return printJSON(std.out, map[string]any{
				"tapedeck": recording.Version, "tape_format": tape.Version, "recording_format": recording.ManifestFormat,
				"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		}
		_, err := visible.Fprintf(std.out, "%s (tape format %d, recording format %d, %s %s/%s)\n",
			recording.Producer, tape.Version, recording.ManifestFormat, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
	std.jsonFlag(cmd, "the versions as JSON")
	return cmd
}
