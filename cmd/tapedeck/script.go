package main

import (
	"github.com/spf13/cobra"
)

func newScriptCommand(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "script",
		SuggestFor: []string{"test"},
		Short:      "Run and test agent logic with every input virtual",
		Long: `A script in Starlark, or a WASI module, runs on a testbench: a clock that stands still until somebody waits, a model that
answers from rules, files in memory, commands and tool servers from a tape, no network. Every input lands on an event tape, the same
bytes in every run, and from that tape the same script runs again. What is not given is denied: a call says what it asked for and how
to give it. docs/testbench.md is the guide, docs/script.md lists what a script may call.`,
		Example: `  tapedeck script new greet
  tapedeck script run greet_test.star
  tapedeck script run greet.star --llm greet_test.llm.jsonl --emit-tape greet.tape -- Ada
  tapedeck script replay greet.tape greet.star`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newScriptRunCommand(std), newScriptReplayCommand(std), newScriptFidelityCommand(std), newScriptNewCommand(std), newScriptFixtureCommand(std),
	)
	return cmd
}
