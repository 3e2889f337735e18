package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type verifyOptions struct {
	sealKeys
	strict bool
}

func newVerifyCommand(std *console) *cobra.Command {
	var o verifyOptions
	cmd := command("verify", "PATH", interruptibly(func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), &o, args[0], std) }))
	cmd.Flags().BoolVar(&o.strict, "strict", false, "an unfinished or unsealed recording, or one of an unknown signer, ends with 2")
	o.define(cmd.Flags())
	std.jsonFlag(cmd, "the result as JSON")
	return cmd
}

func runVerify(ctx context.Context, o *verifyOptions, name string, std *console) error {
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
	p := std.progress()
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
	return std.verdict(holds, v, func() error { return printVerification(v, o.strict, std) })
}

func printVerification(v *verify.Verification, strict bool, std *console) error {
	for _, n := range v.Notes {
		std.say("%s", n)
	}
	switch {
	case v.State != verify.StateUnsealed:
		saySigner(v.Signer, v.SignerKnown, std)
	case len(v.Problems) == 0: // what does not hold is not to be sealed
		std.say("unsealed: nothing proves that it was not edited as a whole (tapedeck seal REC seals it as it is now)")
	}
	for _, w := range v.Cosigned {
		std.say("cosigned by %s at %s", w.Witness, w.Time.Format(timeLayout))
	}
	if next := strictly(v); strict && next != "" {
		std.say("--strict: %s", next)
	}
	for _, p := range v.Problems {
		visible.Fprintln(std.out, p)
	}
	_, err := visible.Fprintf(std.out, "%s (%s) %s: %s, %s\n", shortPath(v.Path), stateOf(v), holds(len(v.Problems)),
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

type sealProveOptions struct {
	stream     string
	leaf       int64
	noPayloads bool
	output     string
}

func newSealProveCommand(std *console) *cobra.Command {
	var o sealProveOptions
	cmd := withHelp("seal prove", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (cmd.Flags().Changed("leaf") || !hasSeqs(o.stream)) {
				return nil
			}
			return takes("REC", "SEQ")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE: interruptibly(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("leaf") {
				o.leaf = -1
			}
			return runSealProve(cmd.Context(), &o, args, std)
		}),
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

func runSealProve(ctx context.Context, o *sealProveOptions, args []string, std *console) error {
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
		return err
	}
	return writeProof(proof.Encode(), o.output, std)
}

func writeProof(b []byte, file string, std *console) error {
	if err := putNew(file, b, std); err != nil || file == "" || file == "-" {
		return err
	}
	return std.say("wrote %s, %s; tapedeck seal verify-proof checks it", file, size(int64(len(b))))
}

// readProof reads a proof from a file, or from stdin where that is "-".
func readProof(file string, std *console) ([]byte, error) {
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

type sealVerifyProofOptions struct {
	sealKeys
	since    string
	payloads bool
}

func newSealVerifyProofCommand(std *console) *cobra.Command {
	var o sealVerifyProofOptions
	cmd := command("seal verify-proof", "FILE", func(_ *cobra.Command, args []string) error { return runSealVerifyProof(&o, args[0], std) })
	f := cmd.Flags()
	o.define(f)
	f.StringVar(&o.since, "since", "", "an older checkpoint of the log, in a `FILE`, for a proof that the log continues it")
	f.BoolVar(&o.payloads, "payloads", false, "the bytes of the blobs that came with the proof, too")
	std.jsonFlag(cmd, "what was proved, or does not hold, as JSON")
	return cmd
}

func runSealVerifyProof(o *sealVerifyProofOptions, file string, std *console) error {
	keys, witnesses, err := o.trusted()
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("a proof shows something only to who knows the key that signed it: name it with --key")
	}
	b, err := readProof(file, std)
	if err != nil {
		return err
	}
	if recordlog.IsProof(b) {
		return verifyLogProof(o, b, file, keys, std)
	}
	p, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: keys, Witnesses: witnesses})
	if err != nil {
		return o.failed(err, file, std)
	}
	if std.json {
		return printJSON(std.out, provenJSON(p))
	}
	return printProven(p, o.payloads, std)
}

// failedProof is what verify-proof --json prints of a proof that does not hold.
type failedProof struct {
	Holds    bool           `json:"holds"`
	Problems []seal.Problem `json:"problems"`
}

// failed says why the proof in file does not hold.
func (o *sealVerifyProofOptions) failed(err error, file string, std *console) error {
	p := &seal.Problem{Code: seal.CodeProof, Leaf: -1, Message: err.Error()}
	if errors.As(err, &p) {
		err = p
	}
	if p.Path = file; file == "-" {
		p.Path = "stdin"
	}
	if std.json {
		if err := printJSON(std.out, &failedProof{false, []seal.Problem{*p}}); err != nil {
			return err
		}
	}
	if errors.Is(err, recordlog.ErrProof) {
		return &statusError{statusDiverged, fmt.Errorf("%s: %w", p.Path, err)}
	}
	return &statusError{statusDiverged, fmt.Errorf("the proof does not hold: %w", err)}
}

// proven is what verify-proof --json prints of a record.
type proven struct {
	Holds     bool               `json:"holds"`
	Recording string             `json:"recording"`
	Signer    string             `json:"signer"`
	Cosigned  []seal.Cosignature `json:"cosigned"`
	Stream    string             `json:"stream"`
	Leaf      int64              `json:"leaf"`
	Leaves    int64              `json:"leaves"`
	Text      string             `json:"text,omitempty"`
	Bytes     []byte             `json:"bytes,omitempty"` // of a leaf that is no UTF-8
	Calls     []provenCall       `json:"tool_calls,omitempty"`
	Payloads  []provenPayload    `json:"payloads"`
}

type provenCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type provenPayload struct {
	Digest string `json:"blake3"`
	Bytes  int    `json:"bytes"`
}

func provenJSON(p *seal.Proven) *proven {
	out := &proven{
		Holds: true, Recording: p.ID, Signer: p.Signer.String(), Cosigned: p.Cosignatures, Stream: p.Stream.Path, Leaf: p.Leaf,
		Leaves: p.Stream.Leaves, Payloads: []provenPayload{},
	}
	if out.Cosigned == nil {
		out.Cosigned = []seal.Cosignature{}
	}
	if utf8.Valid(p.Data) {
		out.Text = string(p.Data)
	} else {
		out.Bytes = p.Data
	}
	for _, c := range callsOf(p) {
		out.Calls = append(out.Calls, provenCall{c.ID, c.Name, string(c.Arguments)})
	}
	for i := range p.Payloads {
		out.Payloads = append(out.Payloads, provenPayload{p.Payloads[i].Digest.String(), len(p.Payloads[i].Bytes)})
	}
	return out
}

// printProven says for a person what a proof shows.
func printProven(p *seal.Proven, payloads bool, std *console) error {
	var b strings.Builder
	stream := p.Stream.Path
	if p.Stream.Kind == seal.Files {
		stream = "the files"
	}
	visible.Fprintf(&b, "proved: leaf %d (0 to %d) of %s in recording %s\n", p.Leaf, p.Stream.Leaves-1, stream, p.ID)
	visible.Fprintf(&b, "sealed by: %s\n", p.Signer)
	for _, c := range p.Cosignatures {
		visible.Fprintf(&b, "cosigned by: %s at %s\n", c.Witness, c.Time.Format(timeLayout))
	}
	if err := writeLeaf(&b, p); err != nil {
		return err
	}
	for i := range p.Payloads {
		visible.Fprintf(&b, "payload: %s, %s\n", p.Payloads[i].Digest, size(int64(len(p.Payloads[i].Bytes))))
	}
	if _, err := io.WriteString(std.out, b.String()); err != nil || !payloads {
		return err
	}
	return writePayloads(std.out, p)
}

// writePayloads writes the bytes that a proof holds beside its leaf, or, short ones, within it.
func writePayloads(w io.Writer, p *seal.Proven) error {
	if rec := recordOf(p); rec != nil {
		store := provenStore(p)
		for _, part := range tape.Payloads(rec.Kind) {
			b, err := part.Bytes(store)
			if err != nil {
				continue // it was left out of the proof
			}
			visible.Fprintf(w, "\n--- %s (%s)\n", part.Hash, size(part.Len))
			if err := writePayload(w, b); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range p.Payloads {
		visible.Fprintf(w, "\n--- %s (%s)\n", p.Payloads[i].Digest, size(int64(len(p.Payloads[i].Bytes))))
		if err := writePayload(w, p.Payloads[i].Bytes); err != nil {
			return err
		}
	}
	return nil
}

// writePayload writes bytes as they are, or on a terminal with control characters escaped.
func writePayload(w io.Writer, b []byte) error {
	if isTerminal(w) {
		_, err := visible.Fprintln(w, string(b))
		return err
	}
	_, err := w.Write(append(b, '\n'))
	return err
}

// writeLeaf writes what a leaf says: what people ask for first.
func writeLeaf(b *strings.Builder, p *seal.Proven) error {
	rec := recordOf(p)
	if rec != nil {
		visible.Fprintf(b, "record %d: %s%s, at %s\n%s\n", rec.Seq, rec.Kind.Name(), inLane(rec), time.UnixMilli(rec.VirtualTimeMS).UTC().Format(timeLayout),
			tapeview.Line(rec.Kind))
	}
	for _, c := range callsOf(p) {
		visible.Fprintf(b, "tool call: %s %s (%s)\n", c.Name, string(c.Arguments), c.ID)
	}
	if rec != nil {
		return tapeview.Fields(b, rec)
	}
	visible.Fprintf(b, "%s\n", strings.TrimSuffix(string(p.Data), "\n"))
	return nil
}

// inLane says in which lane a record stands, where that is of an exchange.
func inLane(rec *tape.Record) string {
	if x := tape.ExchangeOf(rec.Kind); x != nil && x.Lane != "" {
		return " in lane " + x.Lane
	}
	return ""
}

// recordOf is the record of a tape that a proof holds; nil where it holds another thing.
func recordOf(p *seal.Proven) *tape.Record {
	if p.Stream.Kind != seal.Lines || !strings.HasSuffix(p.Stream.Path, ".tape") {
		return nil
	}
	rec, err := tape.ParseRecord(p.Data)
	if err != nil {
		return nil // its header
	}
	return rec
}

// callsOf lists the tools that a proved model call, or session event, asked for.
func callsOf(p *seal.Proven) []sessionlog.ToolCall {
	if rec := recordOf(p); rec != nil {
		return derive.CallsOf(rec, provenStore(p))
	}
	if p.Stream.Path != "session.jsonl" {
		return nil
	}
	e, err := sessionlog.ParseEntry(p.Data)
	if err != nil {
		return nil
	}
	ev, err := e.Event()
	if err != nil {
		return nil
	}
	switch ev := ev.(type) {
	case *sessionlog.ToolRequested:
		return ev.Calls
	case *sessionlog.LLMCompleted:
		return ev.Message.ToolCalls
	}
	return nil
}

func provenStore(p *seal.Proven) cas.Store {
	store := cas.NewMemory()
	for i := range p.Payloads {
		store.Put(p.Payloads[i].Bytes) // in memory nothing can fail
	}
	return store
}

// provenLog is what verify-proof --json prints of a log of recordings.
type provenLog struct {
	Holds  bool             `json:"holds"`
	Log    string           `json:"log"`
	Size   int64            `json:"size"`
	Root   string           `json:"root"`
	Number *int64           `json:"entry,omitempty"`
	Entry  *recordlog.Entry `json:"recording,omitempty"`
	Since  *int64           `json:"since,omitempty"` // entries of the older log
}

func verifyLogProof(o *sealVerifyProofOptions, b []byte, file string, keys []seal.PublicKey, std *console) error {
	var since []byte
	if o.since != "" {
		var err error
		if since, err = os.ReadFile(o.since); err != nil {
			return err
		}
	}
	p, err := recordlog.VerifyProof(b, since, sealing.Verifiers(keys)...)
	if errors.Is(err, recordlog.ErrNoSince) {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return o.failed(err, file, std)
	}
	out := &provenLog{Holds: true, Log: p.Head.Origin, Size: p.Head.Tree.N, Root: p.Head.Tree.Hash.String(), Entry: p.Entry}
	if p.Entry != nil {
		out.Number = &p.Index
	} else {
		out.Since = &p.Old
	}
	if std.json {
		return printJSON(std.out, out)
	}
	if p.Entry == nil {
		_, err = visible.Fprintf(std.out, "proved: the log %s of %s continues the one of %d\n", out.Log,
			plural(int(out.Size), "entry", "entries"), p.Old)
		return err
	}
	e := p.Entry
	_, err = visible.Fprintf(std.out, "proved: entry %d of %d of the log %s\nrecording: %s\nsealed by: %s\nroot: %s\nlogged at: %s, as the log's owner says\npath: %s\n",
		p.Index, out.Size, out.Log, e.ID, e.Key, e.Root, e.Time, e.Path)
	return err
}

// timeLayout is how a time is shown.
const timeLayout = time.RFC3339
