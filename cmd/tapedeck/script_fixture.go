package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

type scriptFixtureOptions struct {
	force bool
	json  bool
}

func newScriptFixtureCommand(std streams) *cobra.Command {
	var o scriptFixtureOptions
	cmd := withHelp("script fixture", &cobra.Command{
		Args:              takes("REC", "OUT.jsonl"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runScriptFixture(cmd.Context(), &o, args[0], args[1], std)
		},
	})
	f := cmd.Flags()
	f.BoolVarP(&o.force, "force", "f", false, "replace OUT.jsonl where it is there")
	f.BoolVar(&o.json, "json", false, "what was written as JSON")
	return cmd
}

func runScriptFixture(ctx context.Context, o *scriptFixtureOptions, from, out string, std streams) error {
	if o.json && out == "-" {
		return fmt.Errorf("script fixture: --json and the fixture both want stdout: name a file in place of -")
	}
	path, clean, err := anyTape(ctx, from, progressFor(std, o.json))
	if err != nil {
		return err
	}
	defer clean()
	rules, err := suite.Rules(path)
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return fmt.Errorf("%s holds no call of a model", from)
	}
	n, err := putWhole(out, o.force, std.out, func(w io.Writer) error { return fixture.WriteRules(w, rules) })
	switch {
	case err != nil:
		return err
	case out == "-":
		return nil
	case o.json:
		return printJSON(std.out, map[string]any{"file": out, "rules": len(rules), "bytes": n})
	}
	_, err = visible.Fprintf(std.err, "tapedeck: wrote %s into %s\n", plural(len(rules), "rule", "rules"), shortPath(out))
	return err
}

// anyTape returns the path of the tape or recording that name stands for, unpacked until clean is called.
func anyTape(ctx context.Context, name string, p *progress) (path string, clean func(), err error) {
	if path, err = tapeOrRecording(name); err != nil {
		return "", nil, err
	}
	if err = notForCassette(path); err != nil {
		return "", nil, err
	}
	return unpacked(ctx, path, p)
}
