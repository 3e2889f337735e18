package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type verifyOptions struct {
	strict bool
	json   bool
}

func newVerifyCommand(std streams) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check every line and every blob of a recording, a tape or a cassette",
		Long: `Reads every line, blob and digest, and holds workspace.diff, arguments and exit code against the tape. An unfinished
or unsealed recording whose lines, blobs and digests hold is sound: that is said on stderr and as state
in the JSON; docs/limits.md has what it cannot see. PATH may be a packed recording (tapedeck pack), or a terminal cassette
(tapedeck cassette record): then every line, chunk and digest of that is checked.

A seal is a signature over all of a recording. This version makes none, so every recording is unsealed, and --strict, which
asks for a finished and sealed one, ends with 2 for each. It passes a bare tape that holds.

Exit status: 0 it holds, 2 something does not: what and where is said (with --strict also: unfinished or unsealed), 1 it
could not be opened, or is of a newer format.`,
		Example: `  tapedeck verify last
  tapedeck verify run.tape --json
  tapedeck verify bug-1234.rec.tar.zst
  tapedeck verify demo.cassette`,
		Args:              takes("PATH"),
		ValidArgsFunction: recordingNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), &o, args[0], std) },
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "an unfinished or unsealed recording ends with 2 (this version seals none)")
	cmd.Flags().BoolVar(&o.json, "json", false, "the result as JSON")
	return cmd
}

func runVerify(ctx context.Context, o *verifyOptions, name string, std streams) error {
	path, err := tapeOrRecording(name)
	if err != nil {
		if dir, errCassette := cassettePath(name); errCassette == nil {
			return verifyCassette(o, dir, std)
		}
		return err
	}
	if isCassette(path) && !deck.HoldsRecording(path) {
		return verifyCassette(o, path, std)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	v, err := deck.VerifyWith(ctx, path, &deck.VerifyOptions{Progress: p.records("verifying"), Unpacking: p.bytes("unpacking")})
	p.end()
	if err != nil {
		return lookHint(err, path)
	}
	if o.json {
		err = printJSON(std.out, v)
	} else {
		err = printVerification(v, o.strict, std)
	}
	if err != nil {
		return err
	}
	if len(v.Problems) > 0 || o.strict && v.State != deck.StateTape {
		return &statusError{status: statusDiverged}
	}
	return nil
}

func printVerification(v *deck.Verification, strict bool, std streams) error {
	for _, n := range v.Notes {
		visible.Fprintf(std.err, "tapedeck: %s\n", n)
	}
	if v.State == deck.StateUnsealed {
		visible.Fprintln(std.err, "tapedeck: unsealed: nothing proves that it was not edited as a whole (seals come later; this version makes none)")
	}
	if next := strictly(v); strict && next != "" {
		visible.Fprintf(std.err, "tapedeck: --strict: %s\n", next)
	}
	for _, p := range v.Problems {
		visible.Fprintln(std.out, p)
	}
	verdict := "holds"
	if n := len(v.Problems); n > 0 {
		verdict = "does not hold: " + plural(n, "problem", "problems")
	}
	_, err := visible.Fprintf(std.out, "%s (%s) %s: %s, %s\n", shortPath(v.Path), stateOf(v), verdict,
		plural(v.Records, "record", "records"), plural(v.Blobs, "blob", "blobs"))
	return err
}

// strictly says why --strict ends with 2 where all of v holds, and what to do; "" where it does not.
func strictly(v *deck.Verification) string {
	switch {
	case v.Live:
		return "status 2, for it is being recorded: verify it when it is finished"
	case v.State == deck.StateRecording:
		return "status 2, for its recorder came to no end: record it again, or verify it without --strict"
	case v.State == deck.StateUnsealed:
		return "status 2, for it is unsealed, as every recording of this version is: verify it without --strict"
	}
	return ""
}

// stateOf is the state of v in the words of list.
func stateOf(v *deck.Verification) string {
	if v.State == deck.StateRecording && !v.Live {
		return "unfinished"
	}
	return v.State
}
