package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	httpforeign "github.com/tapedeck-dev/tapedeck/httptape/foreign"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
)

// helpTexts are the texts of the commands, a file for each command of the first level. A section is
//
//	= seal prove
//	prove REC [SEQ]
//	What it does, in a line
//
//	What there is to know, and the exit statuses
//
//	Examples:
//	  tapedeck seal prove last 3
//
//go:embed help/*.txt
var helpTexts embed.FS

// inHelp is what stands in the texts for what more than one of them says, or the code knows.
var inHelp = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(
		"{{modes}}", strings.Trim(modesHelp, "\n"),
		"{{transcripts}}", strings.Join(foreign.Names(), ", "),
		"{{http cassettes}}", strings.Join(httpforeign.Names(), ", "),
	)
})

// helpSections are the sections of helpTexts, by their paths.
var helpSections = sync.OnceValue(func() map[string]string {
	sections := make(map[string]string)
	files, err := helpTexts.ReadDir("help")
	for _, f := range files {
		text, errRead := helpTexts.ReadFile("help/" + f.Name())
		err = errors.Join(err, errRead)
		for part := range strings.SplitSeq("\n"+string(text), "\n= ") {
			path, section, _ := strings.Cut(part, "\n")
			sections[path] = section
		}
	}
	if err != nil {
		panic(err) // they are in this executable
	}
	return sections
})

// withHelp gives cmd, which is called by path ("seal prove"), its usage and help.
func withHelp(path string, cmd *cobra.Command) *cobra.Command {
	section, ok := helpSections()[path]
	if !ok {
		panic(fmt.Sprintf("no help for %q", path))
	}
	cmd.Use, section, _ = strings.Cut(section, "\n")
	cmd.Short, section, _ = strings.Cut(section, "\n")
	long, example, _ := strings.Cut(section, "\nExamples:\n")
	if strings.Contains(long, "{{") {
		long = inHelp().Replace(long)
	}
	cmd.Long, cmd.Example = strings.Trim(long, "\n"), strings.TrimRight(example, "\n")
	return cmd
}

// oneArgument is the command called by path that takes one argument, called name in its usage, which complete completes (nil: a file).
func oneArgument(path, name string, complete cobra.CompletionFunc, run func(ctx context.Context, arg string) error) *cobra.Command {
	return withHelp(path, &cobra.Command{
		Args:              takes(name),
		ValidArgsFunction: complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0]) },
	})
}

// commandGroup is a command that does nothing but hold others.
func commandGroup(path string, commands ...*cobra.Command) *cobra.Command {
	cmd := withHelp(path, &cobra.Command{Args: knownCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }})
	cmd.AddCommand(commands...)
	return cmd
}
