package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
)

func newSealLogCommand(std streams) *cobra.Command {
	return commandGroup("seal log", newSealLogAddCommand(std), newSealLogVerifyCommand(std), newSealLogProveCommand(std))
}

// logDir is the log that --log names, or that of this work tree.
func logDir(flag string) (*library.Library, string, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, "", err
	}
	if flag == "" {
		flag = lib.SealLog()
	}
	return lib, flag, nil
}

const logFlag = "`DIRECTORY` of the log (default: .tapedeck/log of the work tree)"

func newSealLogAddCommand(std streams) *cobra.Command {
	var log string
	var json bool
	cmd := withHelp("seal log add", &cobra.Command{
		Args:              takes("REC…"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSealLogAdd(cmd.Context(), log, args, json, std)
		},
	})
	cmd.Flags().StringVar(&log, "log", "", logFlag)
	cmd.Flags().BoolVar(&json, "json", false, "what was added as JSON")
	return cmd
}

func runSealLogAdd(ctx context.Context, log string, names []string, json bool, std streams) error {
	lib, dir, err := logDir(log)
	if err != nil {
		return err
	}
	var recs []*recording.Recording
	for _, name := range names {
		rec, err := openRecording(name)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	if log == "" {
		if err := lib.Make(); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	busy := progressFor(std, json).busy("verifying and adding")
	added, err := sealing.AddToLog(ctx, dir, recs, "")
	busy()
	if err != nil {
		return orInterrupted(err)
	}
	if json {
		return printJSON(std.out, map[string]any{"log": dir, "added": added})
	}
	for _, a := range added {
		how := "added"
		if a.Already {
			how = "stands there already"
		}
		visible.Fprintf(std.err, "tapedeck: %s: entry %d of %s: %s\n", a.ID, a.Entry, shortPath(dir), how)
	}
	return nil
}

type sealLogVerifyOptions struct {
	sealKeys
	log   string
	since string
	quick bool
	json  bool
}

func newSealLogVerifyCommand(std streams) *cobra.Command {
	var o sealLogVerifyOptions
	cmd := withHelp("seal log verify", &cobra.Command{
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runSealLogVerify(cmd.Context(), &o, std) },
	})
	f := cmd.Flags()
	o.define(f)
	f.StringVar(&o.log, "log", "", logFlag)
	f.StringVar(&o.since, "since", "", "an older checkpoint of the log, in a `FILE`")
	f.BoolVar(&o.quick, "quick", false, "of the recordings look at their seals alone")
	f.BoolVar(&o.json, "json", false, "the result as JSON")
	return cmd
}

func runSealLogVerify(ctx context.Context, o *sealLogVerifyOptions, std streams) error {
	lib, dir, err := logDir(o.log)
	if err != nil {
		return err
	}
	vo := &sealing.VerifyLogOptions{Quick: o.quick}
	if vo.Keys, vo.Witnesses, err = o.read(); err != nil {
		return err
	}
	if o.since != "" {
		if vo.Since, err = os.ReadFile(o.since); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	busy := progressFor(std, o.json).busy("verifying the log and its recordings")
	v, err := sealing.VerifyLog(ctx, dir, lib.Find, vo)
	busy()
	if errors.Is(err, recordlog.ErrNoLog) {
		return fmt.Errorf("%w: tapedeck seal log add makes one", err)
	}
	if err != nil {
		return orInterrupted(err)
	}
	return printVerdict(std, o.json, len(v.Problems) == 0, v, func() error { return printLogVerification(v, std) })
}

func printLogVerification(v *recordlog.Verification, std streams) error {
	for _, n := range v.Notes {
		visible.Fprintf(std.err, "tapedeck: %s\n", n)
	}
	for _, w := range v.Witnesses {
		visible.Fprintf(std.err, "tapedeck: cosigned by %s\n", w)
	}
	for _, p := range v.Problems {
		visible.Fprintln(std.out, p)
	}
	verdict := "holds"
	if n := len(v.Problems); n > 0 {
		verdict = "does not hold: " + plural(n, "problem", "problems")
	}
	entries := fmt.Sprintf("%d entries", v.Size)
	if v.Size == 1 {
		entries = "1 entry"
	}
	_, err := visible.Fprintf(std.out, "the log %s %s: %s, %s\n", shortPath(v.Log), verdict, entries, plural(v.Recordings, "recording", "recordings"))
	return err
}

type sealLogProveOptions struct {
	sealKeys
	log    string
	since  string
	output string
}

func newSealLogProveCommand(std streams) *cobra.Command {
	var o sealLogProveOptions
	cmd := withHelp("seal log prove", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("since") {
				return cobra.NoArgs(cmd, args)
			}
			return takes("REC")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runSealLogProve(&o, args, std) },
	})
	f := cmd.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "`KEY` whose log it may be: a file such as seal.pub, or NAME+ID+BASE64 (repeatable)")
	f.StringVar(&o.log, "log", "", logFlag)
	f.StringVar(&o.since, "since", "", "prove that the log continues the older checkpoint in this `FILE`")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` that the proof is written to, - for stdout")
	return cmd
}

func runSealLogProve(o *sealLogProveOptions, args []string, std streams) error {
	_, dir, err := logDir(o.log)
	if err != nil {
		return err
	}
	keys, _, err := o.trusted()
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("%s: %w: name the public key of the log's owner with --key", dir, sealing.ErrNoKey)
	}
	log, err := recordlog.Open(dir, sealing.Verifiers(keys)...)
	if errors.Is(err, recordlog.ErrNoLog) {
		return fmt.Errorf("%w: tapedeck seal log add makes one", err)
	}
	if err != nil {
		return changedLog(err)
	}
	var proof []byte
	if o.since != "" {
		proof, err = proveSince(log, o.since, keys)
	} else {
		proof, err = proveLogged(log, args[0])
	}
	if err != nil {
		return changedLog(err)
	}
	return writeProof(proof, o.output, std)
}

func changedLog(err error) error {
	if errors.Is(err, recordlog.ErrChanged) || errors.Is(err, recordlog.ErrCheckpoint) || errors.Is(err, recordlog.ErrProof) {
		return &statusError{statusDiverged, err}
	}
	return err
}

func proveSince(log *recordlog.Log, file string, keys []seal.PublicKey) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	old, err := recordlog.ParseCheckpoint(b, sealing.Verifiers(keys)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return log.ProveSince(old)
}

// proveLogged proves the newest entry of a recording, which may be gone: then its whole id names it.
func proveLogged(log *recordlog.Log, name string) ([]byte, error) {
	id := name
	rec, errRec := openRecording(name)
	if errRec == nil {
		id = rec.Manifest.ID
	}
	n, e, err := log.Find(id)
	switch {
	case err != nil:
		return nil, err
	case e == nil && errRec != nil:
		return nil, fmt.Errorf("%w; and the log %s lists none whose id is %q", errRec, log.Dir, name)
	case e == nil:
		return nil, fmt.Errorf("the log %s does not list %s: tapedeck seal log add adds it", log.Dir, id)
	}
	return log.Prove(n)
}
