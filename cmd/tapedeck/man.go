package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newManCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("man", &cobra.Command{
		Args: takes("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := writePages(cmd.Root(), args[0]); err != nil {
				return err
			}
			if json {
				return printJSON(std.out, map[string]any{"directory": args[0]})
			}
			_, err := visible.Fprintf(std.err, "tapedeck: manual pages written into %s\n", args[0])
			return err
		},
	})
	cmd.Flags().BoolVar(&json, "json", false, "where they lie as JSON")
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
