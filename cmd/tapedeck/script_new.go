package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

func newScriptNewCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("script new", &cobra.Command{
		Args: takes("NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return runScriptNew(args[0], json, std) },
	})
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
