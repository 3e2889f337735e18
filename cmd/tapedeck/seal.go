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
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

type sealOptions struct {
	anew bool
	json bool
}

func newSealCommand(std streams) *cobra.Command {
	var o sealOptions
	cmd := oneArgument("seal", "REC", recordingNames, func(ctx context.Context, rec string) error { return runSeal(ctx, &o, rec, std) })
	cmd.Flags().BoolVar(&o.anew, "anew", false, "seal it as it is now, whatever the seal says that it has or had")
	cmd.Flags().BoolVar(&o.json, "json", false, "the seal as JSON")
	cmd.AddCommand(newSealVerifyCommand(std), newSealProveCommand(std), newSealVerifyProofCommand(std), newSealKeyCommand(std), newSealLogCommand(std))
	return cmd
}

func runSeal(ctx context.Context, o *sealOptions, name string, std streams) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	s, err := sealing.Seal(ctx, rec, &sealing.Options{Anew: o.anew, Progress: p.bytes("sealing")})
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	if o.json {
		return printJSON(std.out, s)
	}
	if s.KeyMade {
		visible.Fprintf(std.err, "tapedeck: %s\n", keyMade())
	}
	how := "sealed"
	if s.Already {
		how = "was sealed already, and its seal holds: nothing was done"
	}
	_, err = visible.Fprintf(std.err, "tapedeck: %s %s (%s, by %s)\n", shortPath(rec.Dir), how, plural(int(s.Leaves), "leaf", "leaves"), s.Key)
	return err
}

type sealVerifyOptions struct {
	sealKeys
	strict bool
	json   bool
}

func newSealVerifyCommand(std streams) *cobra.Command {
	var o sealVerifyOptions
	cmd := oneArgument("seal verify", "REC", recordingNames, func(ctx context.Context, rec string) error {
		return runSealVerify(ctx, &o, rec, std)
	})
	o.define(cmd.Flags())
	cmd.Flags().BoolVar(&o.strict, "strict", false, "a seal by nobody knows whom ends with 2")
	cmd.Flags().BoolVar(&o.json, "json", false, "the result as JSON")
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

func runSealVerify(ctx context.Context, o *sealVerifyOptions, name string, std streams) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	keys, witnesses, err := o.trusted()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	res, err := seal.Verify(ctx, rec.Dir, &seal.VerifyOptions{Keys: keys, Witnesses: witnesses, ID: rec.Manifest.ID, Progress: p.bytes("verifying")})
	p.end()
	if errors.Is(err, seal.ErrNoSeal) {
		return o.noSeal(rec, std)
	}
	if err != nil {
		return orInterrupted(err)
	}
	out := &sealResult{
		Recording: rec.Dir, ID: rec.Manifest.ID, Holds: res.OK(), Signer: res.Signer.String(), SignerKnown: res.SignerKnown,
		Cosigned: res.Cosignatures, Unknown: nonNil(res.Unknown), Leaves: res.Leaves, Bytes: res.Bytes, Problems: res.Problems,
	}
	if out.Cosigned == nil {
		out.Cosigned = []seal.Cosignature{}
	}
	holds := res.OK() && (res.SignerKnown || !o.strict)
	return printVerdict(std, o.json, holds, out, func() error { return printSealResult(out, std) })
}

func (o *sealVerifyOptions) noSeal(rec *recording.Recording, std streams) error {
	missing := seal.Problem{Code: seal.CodeMissing, Path: seal.FileName, Leaf: -1, Message: "it has no seal"}
	if o.json {
		err := printJSON(std.out, &sealResult{
			Recording: rec.Dir, ID: rec.Manifest.ID, Cosigned: []seal.Cosignature{}, Unknown: []string{}, Problems: []seal.Problem{missing},
		})
		if err != nil {
			return err
		}
	}
	return &statusError{statusDiverged, fmt.Errorf("%s: it has no seal (%s)", shortPath(rec.Dir), howToSeal(rec))}
}

func printSealResult(r *sealResult, std streams) error {
	saySigner(r.Signer, r.SignerKnown, std)
	for _, c := range r.Cosigned {
		visible.Fprintf(std.err, "tapedeck: cosigned by %s at %s\n", c.Witness, c.Time.Format(timeLayout))
	}
	for i := range r.Problems {
		visible.Fprintln(std.out, &r.Problems[i])
	}
	verdict := "holds"
	if n := len(r.Problems); n > 0 {
		verdict = "does not hold: " + plural(n, "problem", "problems")
	}
	_, err := visible.Fprintf(std.out, "the seal of %s %s: %s, %s\n", shortPath(r.Recording), verdict, plural(int(r.Leaves), "leaf", "leaves"), size(r.Bytes))
	return err
}

func saySigner(key string, known bool, std streams) {
	switch {
	case key == "":
	case known:
		visible.Fprintf(std.err, "tapedeck: sealed by %s\n", key)
	default:
		visible.Fprintf(std.err, "tapedeck: sealed by %s, whom nothing here knows: with --key and the public key that you got from the "+
			"signer it is checked who that was\n", key)
	}
}

func newSealKeyCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("seal key", &cobra.Command{
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runSealKey(json, std) },
	})
	cmd.Flags().BoolVar(&json, "json", false, "the key as JSON")
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

func runSealKey(json bool, std streams) error {
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
	if json {
		return printJSON(std.out, out)
	}
	if out.Signs {
		visible.Fprintf(std.err, "tapedeck: the public half lies in %s, the private one, which nobody else may have, in %s\n", out.Public, out.Private)
	} else {
		visible.Fprintf(std.err, "tapedeck: nothing can be sealed with it: %s\n", out.Why)
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
