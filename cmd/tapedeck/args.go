package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes checks that there is one argument for each of names, as they stand in the command's usage. The last may stand for
// several where its name ends so: REC….
func takes(names ...string) cobra.PositionalArgs {
	many := strings.HasSuffix(names[len(names)-1], "…")
	return func(cmd *cobra.Command, args []string) error {
		all := strings.Join(names, " and ")
		switch {
		case len(args) < len(names):
			missing, are := strings.Join(names[len(args):], " and "), "is"
			if len(args)+1 < len(names) {
				are = "are"
			}
			return fmt.Errorf("%s takes %s: %s %s missing (%s --help has examples)", cmd.Name(), all,
				strings.TrimSuffix(missing, "…"), are, cmd.CommandPath())
		case len(args) > len(names) && !many:
			return fmt.Errorf("%s takes %s: %q is one too many (%s --help has examples)", cmd.Name(), all, args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// withStatus makes a wrong number of arguments end with status.
func withStatus(check cobra.PositionalArgs, status int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &statusError{status, err}
		}
		return nil
	}
}

// flagError says what a flag wants, in the words of its help in place of those of the package that parses it.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		_, usage := pflag.UnquoteUsage(f)
		err = fmt.Errorf("--%s %q: want %s: %s", f.Name, invalid.GetValue(), wanted(f.Value.Type()), usage)
	}
	return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
}

// wanted says in words what a flag of this type takes.
func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}
