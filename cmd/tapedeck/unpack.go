package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type unpackOptions struct {
	output  string
	maxSize string
	json    bool
}

func newUnpackCommand(std streams) *cobra.Command {
	var o unpackOptions
	cmd := withHelp("unpack", &cobra.Command{
		Args: takes("FILE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // files
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runUnpack(cmd.Context(), &o, args[0], std) },
	})
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the recording (default: its id in .tapedeck/)")
	f.StringVar(&o.maxSize, "max-size", "64G", "refuse a file that declares more `bytes` than this: a number with K, M, G or T")
	f.BoolVar(&o.json, "json", false, "what was unpacked as JSON")
	return cmd
}

func runUnpack(ctx context.Context, o *unpackOptions, file string, std streams) error {
	limit, err := parseSize(o.maxSize)
	if err != nil {
		return fmt.Errorf("--max-size: %w", err)
	}
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	rec, err := lib.Unpack(ctx, file, &library.UnpackOptions{
		Output: o.output, Limits: packed.Limits{Bytes: limit}, Progress: p.bytes("unpacking"),
	})
	p.end()
	if err != nil {
		return unpackHint(err)
	}
	m := rec.Manifest
	if o.json {
		return printJSON(std.out, map[string]any{"recording": rec.Dir, "id": m.ID, "state": m.State})
	}
	if !rec.Finished() {
		visible.Fprintln(std.err, "tapedeck: unfinished: the recorder did not come to its end")
	}
	_, err = visible.Fprintf(std.err, "tapedeck: unpacked %s\n", shortPath(rec.Dir))
	return err
}

// unpackHint adds the next step to a refusal of unpack that has one.
func unpackHint(err error) error {
	var limit *packed.LimitError
	switch {
	case errors.As(err, &limit) && limit.What == "bytes":
		return fmt.Errorf("%w: if you trust the file, give --max-size %d", err, limit.Have)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w: name another directory with -o, or `tapedeck rm` that recording first", err)
	}
	return damagedHint(err)
}

// lookHint is unpackHint for commands that look into a packed recording, which have none of the flags of unpack.
func lookHint(err error, path string) error {
	var limit *packed.LimitError
	if errors.As(err, &limit) && limit.What == "bytes" {
		return fmt.Errorf("%w: if you trust the file, `tapedeck unpack %s --max-size %d` and look at what that made",
			err, shortPath(path), limit.Have)
	}
	return damagedHint(err)
}

func damagedHint(err error) error {
	if errors.Is(err, packed.ErrDamaged) {
		return fmt.Errorf("%w: get the file again from whoever packed it", err)
	}
	return orInterrupted(err)
}

// parseSize reads a number of bytes, with K, M, G or T behind it for powers of 1024.
func parseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	if i := strings.IndexByte("KMGT", (s + " ")[max(0, len(s)-1)]); i >= 0 {
		digits, unit = s[:len(s)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q: want a number of bytes, as in 500M or 64G", s)
	}
	return n * unit, nil
}

// unpacked returns the recording that is packed in the file at path, unpacked for as long as clean is not called; path
// itself where it is anything else.
func unpacked(ctx context.Context, path string, p *progress) (dir string, clean func(), err error) {
	if !library.LooksPacked(path) {
		return path, func() {}, nil
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	rec, clean, err := library.UnpackTemp(ctx, path, p.bytes("unpacking"))
	p.end()
	if err != nil {
		return "", nil, lookHint(err, path)
	}
	return rec.Dir, clean, nil
}
