package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

type sealProveOptions struct {
	stream     string
	leaf       int64
	noPayloads bool
	output     string
}

func newSealProveCommand(std streams) *cobra.Command {
	var o sealProveOptions
	cmd := withHelp("seal prove", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (cmd.Flags().Changed("leaf") || !hasSeqs(o.stream)) {
				return nil
			}
			return takes("REC", "SEQ")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("leaf") {
				o.leaf = -1
			}
			return runSealProve(cmd.Context(), &o, args, std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.stream, "stream", "run.tape", "the `FILE` of the recording that the record stands in")
	f.Int64Var(&o.leaf, "leaf", 0, "the line or chunk by its place, from 0, in place of SEQ")
	f.BoolVar(&o.noPayloads, "no-payloads", false, "leave out the blobs that the record names")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` that the proof is written to, - for stdout")
	completeFlag(cmd, "stream", "run.tape", "session.jsonl", "recording.json", "workspace.diff", "tree.json", "terminal/output.raw")
	return cmd
}

// listOf is the command that lists what a stream holds, with the numbers that prove takes.
func listOf(stream, name string) string {
	if stream == "session.jsonl" {
		return "`tapedeck session show " + name + "`, whose first line has seq 0,"
	}
	return "`tapedeck show " + name + "`"
}

// howToSeal is what helps where a seal is missing.
func howToSeal(rec *recording.Recording) string {
	if rec.Manifest.State != recording.StateFinished {
		return "its recorder did not come to its end, so it cannot be sealed either: record it again"
	}
	return "tapedeck seal REC seals it as it is now"
}

// hasSeqs reports whether what is in a stream of that name is told by its seq.
func hasSeqs(stream string) bool {
	return strings.HasSuffix(stream, ".tape") || strings.HasSuffix(stream, ".jsonl")
}

func runSealProve(ctx context.Context, o *sealProveOptions, args []string, std streams) error {
	rec, err := openRecording(args[0])
	if err != nil {
		return err
	}
	po := &seal.ProveOptions{Path: o.stream, Payloads: !o.noPayloads}
	if o.leaf >= 0 {
		po.Leaf = &o.leaf
	}
	if len(args) > 1 {
		if po.Seq, err = strconv.ParseUint(args[1], 10, 64); err != nil {
			return fmt.Errorf("SEQ %q: want the number of a record, as tapedeck show has it", args[1])
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	proof, err := seal.Prove(ctx, rec.Dir, po)
	var p *seal.Problem
	switch {
	case errors.As(err, &p):
		return &statusError{statusDiverged, fmt.Errorf("%s: %w; `tapedeck verify` says everything that does not hold", shortPath(rec.Dir), err)}
	case errors.Is(err, seal.ErrNoSeal):
		return fmt.Errorf("%s: it has no seal, and what is not sealed cannot be proved (%s)", shortPath(rec.Dir), howToSeal(rec))
	case errors.Is(err, seal.ErrNoLeaf) && len(args) > 1:
		return fmt.Errorf("%w: %s lists what there is", err, listOf(o.stream, args[0]))
	case err != nil:
		return orInterrupted(err)
	}
	return writeProof(proof.Encode(), o.output, std)
}

// writeProof writes a proof to a file, or to stdout.
func writeProof(b []byte, file string, std streams) error {
	if file == "" || file == "-" {
		_, err := std.out.Write(b)
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already: name another file, or remove it first", file)
	}
	if err := durable.WriteFile(file, b, &durable.Options{Mode: 0o644}); err != nil {
		return err
	}
	_, err := visible.Fprintf(std.err, "tapedeck: wrote %s, %s; tapedeck seal verify-proof checks it\n", file, size(int64(len(b))))
	return err
}

// readProof reads a proof from a file, or from stdin where that is "-".
func readProof(file string, std streams) ([]byte, error) {
	in := std.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, seal.MaxProof+1))
}
