package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassetteScrubOptions struct {
	to        string
	accounts  []string
	keepEmail bool
	preserve  []string
	json      bool
}

func newCassetteScrubCommand(std streams) *cobra.Command {
	var o cassetteScrubOptions
	cmd := withHelp("cassette scrub", &cobra.Command{
		Args:              takes("CASSETTE"),
		ValidArgsFunction: cassetteNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runCassetteScrub(&o, args[0], std) },
	})
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "`directory` for the masked one, which is made (default: in place)")
	f.StringArrayVar(&o.accounts, "account", nil, "`name` of an account that is masked wherever it stands as a word (repeatable)")
	f.BoolVar(&o.keepEmail, "keep-email", false, "leave addresses of email")
	f.StringArrayVar(&o.preserve, "preserve", nil, "`text` for the report: what is kept on purpose (repeatable)")
	f.BoolVar(&o.json, "json", false, "the report as JSON")
	return cmd
}

func runCassetteScrub(o *cassetteScrubOptions, name string, std streams) error {
	dir, err := cassettePath(name)
	if err != nil {
		return err
	}
	if o.to == "" {
		if err := unsealedOnly(dir); err != nil {
			return err
		}
	}
	known, err := secrets.OfTerminal(nil, os.Environ())
	if err != nil {
		return err
	}
	stop := progressFor(std, o.json).busy("masking")
	report, err := cassette.Scrub(dir, &cassette.ScrubOptions{
		To: o.to, Scrub: known, Accounts: o.accounts, KeepEmail: o.keepEmail, Preserve: o.preserve,
	})
	stop()
	if err != nil {
		return finishedOnly(dir, err, "only a finished cassette is masked")
	}
	if o.to != "" {
		dir = o.to
	}
	if o.json {
		return printJSON(std.out, map[string]any{"cassette": dir, "scrub": report})
	}
	_, err = visible.Fprintf(std.err, "tapedeck: %s: %s\n", shortPath(dir), secretsOf(report))
	return err
}

// unsealedOnly refuses to write into the terminal of a sealed recording: its seal would not hold any more.
func unsealedOnly(dir string) error {
	rec, err := recording.Open(filepath.Dir(dir))
	if err != nil || !rec.Manifest.Sealed {
		return nil // it is no recording's
	}
	return fmt.Errorf("%s is the terminal of a sealed recording, which masking would break: mask a copy with --to DIRECTORY", shortPath(dir))
}
