package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

func newScriptNewCommand(std streams) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "new [DIR/]NAME",
		Short: "Write a first script, its tests and a fixture",
		Long: `Writes a small agent to begin with: NAME.star, its tests in NAME_test.star, NAME_test.llm.jsonl, the model's answers, and
__builtins__.pyi, from which an editor with Pyright knows what a script may call. Nothing that is there is written over.

Exit status: 0 done, 1 failed.`,
		Example: `  tapedeck script new greet
  tapedeck script new agents/triage`,
		Args: takes("NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return runScriptNew(args[0], json, std) },
	}
	cmd.Flags().BoolVar(&json, "json", false, "what was written as JSON")
	return cmd
}

func runScriptNew(name string, json bool, std streams) error {
	paths, err := suite.Create(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return err
	}
	if json {
		return printJSON(std.out, map[string]any{"files": paths})
	}
	for _, path := range paths {
		visible.Fprintf(std.err, "tapedeck: wrote %s\n", shortPath(path))
	}
	_, err = visible.Fprintf(std.err, "tapedeck: tapedeck script run %s runs the tests\n", shortPath(paths[1]))
	return err
}
