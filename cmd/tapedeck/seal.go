package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
)

type sealOptions struct {
	anew bool
}

func newSealCommand(std *console) *cobra.Command {
	var o sealOptions
	cmd := command("seal", "REC", interruptibly(func(cmd *cobra.Command, args []string) error { return runSeal(cmd.Context(), &o, args[0], std) }))
	cmd.Flags().BoolVar(&o.anew, "anew", false, "seal it as it is now, whatever the seal says that it has or had")
	std.jsonFlag(cmd, "the seal as JSON")
	cmd.AddCommand(newSealVerifyCommand(std), newSealProveCommand(std), newSealVerifyProofCommand(std), newSealKeyCommand(std), newSealLogCommand(std))
	return cmd
}

func runSeal(ctx context.Context, o *sealOptions, name string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	p := std.progress()
	s, err := sealing.Seal(ctx, rec, &sealing.Options{Anew: o.anew, Progress: p.bytes("sealing")})
	p.end()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, s)
	}
	if s.KeyMade {
		std.say("%s", keyMade())
	}
	how := "sealed"
	if s.Already {
		how = "was sealed already, and its seal holds: nothing was done"
	}
	return std.say("%s %s (%s, by %s)", shortPath(rec.Dir), how, plural(int(s.Leaves), "leaf", "leaves"), s.Key)
}

type sealVerifyOptions struct {
	sealKeys
	strict bool
}

func newSealVerifyCommand(std *console) *cobra.Command {
	var o sealVerifyOptions
	cmd := command("seal verify", "REC", interruptibly(func(cmd *cobra.Command, args []string) error { return runSealVerify(cmd.Context(), &o, args[0], std) }))
	o.define(cmd.Flags())
	cmd.Flags().BoolVar(&o.strict, "strict", false, "a seal by nobody knows whom ends with 2")
	std.jsonFlag(cmd, "the result as JSON")
	return cmd
}

// sealResult is what seal verify --json prints.
type sealResult struct {
	Recording   string             `json:"recording"`
	ID          string             `json:"id"`
	Holds       bool               `json:"holds"`
	Signer      string             `json:"signer"`
	SignerKnown bool               `json:"signer_known"`
	Cosigned    []seal.Cosignature `json:"cosigned"`
	Unknown     []string           `json:"unknown_signatures"`
	Leaves      int64              `json:"leaves"`
	Bytes       int64              `json:"bytes"`
	Problems    []seal.Problem     `json:"problems"`
}

func runSealVerify(ctx context.Context, o *sealVerifyOptions, name string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	keys, witnesses, err := o.trusted()
	if err != nil {
		return err
	}
	p := std.progress()
	res, err := seal.Verify(ctx, rec.Dir, &seal.VerifyOptions{Keys: keys, Witnesses: witnesses, ID: rec.Manifest.ID, Progress: p.bytes("verifying")})
	p.end()
	if errors.Is(err, seal.ErrNoSeal) {
		return o.noSeal(rec, std)
	}
	if err != nil {
		return err
	}
	out := &sealResult{
		Recording: rec.Dir, ID: rec.Manifest.ID, Holds: res.OK(), Signer: res.Signer.String(), SignerKnown: res.SignerKnown,
		Cosigned: res.Cosignatures, Unknown: nonNil(res.Unknown), Leaves: res.Leaves, Bytes: res.Bytes, Problems: res.Problems,
	}
	if out.Cosigned == nil {
		out.Cosigned = []seal.Cosignature{}
	}
	holds := res.OK() && (res.SignerKnown || !o.strict)
	return std.verdict(holds, out, func() error { return printSealResult(out, std) })
}

func (o *sealVerifyOptions) noSeal(rec *recording.Recording, std *console) error {
	missing := seal.Problem{Code: seal.CodeMissing, Path: seal.FileName, Leaf: -1, Message: "it has no seal"}
	if std.json {
		err := printJSON(std.out, &sealResult{
			Recording: rec.Dir, ID: rec.Manifest.ID, Cosigned: []seal.Cosignature{}, Unknown: []string{}, Problems: []seal.Problem{missing},
		})
		if err != nil {
			return err
		}
	}
	return &statusError{statusDiverged, fmt.Errorf("%s: it has no seal (%s)", shortPath(rec.Dir), howToSeal(rec))}
}

func printSealResult(r *sealResult, std *console) error {
	saySigner(r.Signer, r.SignerKnown, std)
	for _, c := range r.Cosigned {
		std.say("cosigned by %s at %s", c.Witness, c.Time.Format(timeLayout))
	}
	for i := range r.Problems {
		visible.Fprintln(std.out, &r.Problems[i])
	}
	_, err := visible.Fprintf(std.out, "the seal of %s %s: %s, %s\n", shortPath(r.Recording), holds(len(r.Problems)), plural(int(r.Leaves), "leaf", "leaves"), size(r.Bytes))
	return err
}

func saySigner(key string, known bool, std *console) {
	switch {
	case key == "":
	case known:
		std.say("sealed by %s", key)
	default:
		visible.Fprintf(std.err, "tapedeck: sealed by %s, whom nothing here knows: with --key and the public key that you got from the "+
			"signer it is checked who that was\n", key)
	}
}

func newSealKeyCommand(std *console) *cobra.Command {
	cmd := command("seal key", "", func(*cobra.Command, []string) error { return runSealKey(std) })
	std.jsonFlag(cmd, "the key as JSON")
	return cmd
}

// sealKey is what seal key --json prints.
type sealKey struct {
	Key     string `json:"key"`
	Name    string `json:"name"`
	Public  string `json:"public"`  // path of seal.pub
	Private string `json:"private"` // path of seal.key
	Signs   bool   `json:"signs"`   // the private half is there and fits
	Why     string `json:"why"`
}

func runSealKey(std *console) error {
	path := sealing.KeyPath("")
	out := sealKey{Public: path, Private: filepath.Join(filepath.Dir(path), seal.PrivateKeyFile)}
	_, errPub := os.Lstat(path)
	_, errKey := os.Lstat(out.Private)
	if errors.Is(errPub, fs.ErrNotExist) && errors.Is(errKey, fs.ErrNotExist) {
		return fmt.Errorf("there is no sealing key in %s yet: the first recording makes it, or tapedeck seal REC", filepath.Dir(path))
	}
	if key, err := seal.LoadKey(filepath.Dir(path)); err == nil {
		out.Signs, out.Key, out.Name = true, key.Public().String(), key.Name()
	} else {
		keys, errPub := seal.ReadPublicKeys(path)
		if errPub != nil {
			return err
		}
		out.Key, out.Name, out.Why = keys[0].String(), keys[0].Name(), err.Error()
	}
	if std.json {
		return printJSON(std.out, out)
	}
	if out.Signs {
		std.say("the public half lies in %s, the private one, which nobody else may have, in %s", out.Public, out.Private)
	} else {
		std.say("nothing can be sealed with it: %s", out.Why)
	}
	_, err := visible.Fprintln(std.out, out.Key)
	return err
}

// sealKeys are the flags that say whose seal is asked for.
type sealKeys struct {
	keys      []string
	witnesses []string
}

func (o *sealKeys) define(f *pflag.FlagSet) {
	f.StringArrayVar(&o.keys, "key", nil, "`KEY` that may have sealed: a file such as seal.pub, or NAME+ID+BASE64 (repeatable)")
	f.StringArrayVar(&o.witnesses, "witness", nil, "`KEY` of a witness that must have cosigned, given the same way (repeatable)")
}

func (o *sealKeys) read() (keys, witnesses []seal.PublicKey, err error) {
	if keys, err = readKeys("--key", o.keys); err != nil {
		return nil, nil, err
	}
	witnesses, err = readKeys("--witness", o.witnesses)
	return keys, witnesses, err
}

// trusted is read with this machine's key where none is named.
func (o *sealKeys) trusted() (keys, witnesses []seal.PublicKey, err error) {
	if keys, witnesses, err = o.read(); err != nil || len(keys) > 0 {
		return keys, witnesses, err
	}
	keys, err = sealing.TrustedKeys("")
	return keys, witnesses, err
}

func readKeys(flag string, list []string) (out []seal.PublicKey, err error) {
	for _, s := range list {
		if _, err := os.Stat(s); err == nil {
			keys, err := seal.ReadPublicKeys(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", flag, err)
			}
			out = append(out, keys...)
			continue
		}
		k, err := seal.ParsePublicKey(s)
		if err != nil {
			return nil, fmt.Errorf("%s %q: there is no such file, and as a key it is %w", flag, s, err)
		}
		out = append(out, k)
	}
	return out, nil
}

func newSealLogCommand(std *console) *cobra.Command {
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

func newSealLogAddCommand(std *console) *cobra.Command {
	var log string
	cmd := command("seal log add", "REC…", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runSealLogAdd(cmd.Context(), log, args, std)
	}))
	cmd.Flags().StringVar(&log, "log", "", logFlag)
	std.jsonFlag(cmd, "what was added as JSON")
	return cmd
}

func runSealLogAdd(ctx context.Context, log string, names []string, std *console) error {
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
	busy := std.progress().busy("verifying and adding")
	added, err := sealing.AddToLog(ctx, dir, recs)
	busy()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"log": dir, "added": added})
	}
	for _, a := range added {
		how := "added"
		if a.Already {
			how = "stands there already"
		}
		std.say("%s: entry %d of %s: %s", a.ID, a.Entry, shortPath(dir), how)
	}
	return nil
}

type sealLogVerifyOptions struct {
	sealKeys
	log   string
	since string
	quick bool
}

func newSealLogVerifyCommand(std *console) *cobra.Command {
	var o sealLogVerifyOptions
	cmd := command("seal log verify", "", interruptibly(func(cmd *cobra.Command, _ []string) error { return runSealLogVerify(cmd.Context(), &o, std) }))
	f := cmd.Flags()
	o.define(f)
	f.StringVar(&o.log, "log", "", logFlag)
	f.StringVar(&o.since, "since", "", "an older checkpoint of the log, in a `FILE`")
	f.BoolVar(&o.quick, "quick", false, "of the recordings look at their seals alone")
	std.jsonFlag(cmd, "the result as JSON")
	return cmd
}

func runSealLogVerify(ctx context.Context, o *sealLogVerifyOptions, std *console) error {
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
	busy := std.progress().busy("verifying the log and its recordings")
	v, err := sealing.VerifyLog(ctx, dir, lib.Find, vo)
	busy()
	if errors.Is(err, recordlog.ErrNoLog) {
		return fmt.Errorf("%w: tapedeck seal log add makes one", err)
	}
	if err != nil {
		return err
	}
	return std.verdict(len(v.Problems) == 0, v, func() error { return printLogVerification(v, std) })
}

func printLogVerification(v *recordlog.Verification, std *console) error {
	for _, n := range v.Notes {
		std.say("%s", n)
	}
	for _, w := range v.Witnesses {
		std.say("cosigned by %s", w)
	}
	for _, p := range v.Problems {
		visible.Fprintln(std.out, p)
	}
	_, err := visible.Fprintf(std.out, "the log %s %s: %s, %s\n", shortPath(v.Log), holds(len(v.Problems)), plural(int(v.Size), "entry", "entries"), plural(v.Recordings, "recording", "recordings"))
	return err
}

type sealLogProveOptions struct {
	sealKeys
	log    string
	since  string
	output string
}

func newSealLogProveCommand(std *console) *cobra.Command {
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

func runSealLogProve(o *sealLogProveOptions, args []string, std *console) error {
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
