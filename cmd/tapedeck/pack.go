package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newPackCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("pack", &cobra.Command{
		Args: takes("REC", "FILE"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return recordingNames(cmd, args, to)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPack(cmd.Context(), args[0], args[1], json, std)
		},
	})
	cmd.Flags().BoolVar(&json, "json", false, "what was packed as JSON")
	return cmd
}

func runPack(ctx context.Context, name, file string, json bool, std streams) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, json)
	packing, err := library.Pack(ctx, rec, file, &library.PackOptions{Progress: p.bytes("packing")})
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	if json {
		return printJSON(std.out, packing)
	}
	if !rec.Finished() {
		visible.Fprintln(std.err, "tapedeck: unfinished: the recorder did not come to its end")
	}
	for _, l := range packing.LeftOut {
		visible.Fprintf(std.err, "tapedeck: left out: %s (%s)\n", l.Path, l.Why)
	}
	_, err = visible.Fprintf(std.err, "tapedeck: packed %s into %s: %s, %s in %s\n", packing.ID, shortPath(packing.File),
		size(packing.Size), size(packing.Bytes), plural(int(packing.Files), "file", "files"))
	return err
}

// interruptible returns a context that ends with the first signal that is meant to end the command, so that it can clean
// up; the second ends it at once.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// orInterrupted says of the end of an interruptible context what it means.
func orInterrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was left behind")
	}
	return err
}
