package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type verifyOptions struct {
	sealKeys
	strict bool
	json   bool
}

func newVerifyCommand(std streams) *cobra.Command {
	var o verifyOptions
	cmd := oneArgument("verify", "PATH", recordingNames, func(ctx context.Context, path string) error {
		return runVerify(ctx, &o, path, std)
	})
	cmd.Flags().BoolVar(&o.strict, "strict", false, "an unfinished or unsealed recording, or one of an unknown signer, ends with 2")
	o.define(cmd.Flags())
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
	if isCassette(path) && !library.HoldsRecording(path) {
		return verifyCassette(o, path, std)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	keys, witnesses, err := o.read()
	if err != nil {
		return err
	}
	v, err := verify.Verify(ctx, path, &verify.Options{
		Keys: keys, Witnesses: witnesses, Progress: p.records("verifying"), Unpacking: p.bytes("unpacking"),
	})
	p.end()
	if err != nil {
		return lookHint(err, path)
	}
	holds := len(v.Problems) == 0 && (!o.strict || strictly(v) == "")
	return printVerdict(std, o.json, holds, v, func() error { return printVerification(v, o.strict, std) })
}

func printVerification(v *verify.Verification, strict bool, std streams) error {
	for _, n := range v.Notes {
		visible.Fprintf(std.err, "tapedeck: %s\n", n)
	}
	switch {
	case v.State != verify.StateUnsealed:
		saySigner(v.Signer, v.SignerKnown, std)
	case len(v.Problems) == 0: // what does not hold is not to be sealed
		visible.Fprintln(std.err, "tapedeck: unsealed: nothing proves that it was not edited as a whole (tapedeck seal REC seals it as it is now)")
	}
	for _, w := range v.Cosigned {
		visible.Fprintf(std.err, "tapedeck: cosigned by %s at %s\n", w.Witness, w.Time.Format(timeLayout))
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
func strictly(v *verify.Verification) string {
	switch {
	case v.Live:
		return "status 2, for it is being recorded: verify it when it is finished"
	case v.State == recording.StateRecording:
		return "status 2, for its recorder came to no end: record it again, or verify it without --strict"
	case v.State == verify.StateUnsealed:
		return "status 2, for it is unsealed: seal it (tapedeck seal), or verify it without --strict"
	case v.State == verify.StateSealed && !v.SignerKnown:
		return "status 2, for nothing here knows who sealed it: name the key (--key)"
	}
	return ""
}

// stateOf is the state of v in the words of list.
func stateOf(v *verify.Verification) string {
	if v.State == recording.StateRecording && !v.Live {
		return "unfinished"
	}
	return v.State
}
