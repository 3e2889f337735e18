package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type applyOptions struct {
	reverse bool
}

func newApplyCommand(std *console) *cobra.Command {
	var o applyOptions
	cmd := command("apply", "REC", func(_ *cobra.Command, args []string) error { return runApply(&o, args[0], std) })
	cmd.Flags().BoolVar(&o.reverse, "reverse", false, "undo what the run did")
	std.jsonFlag(cmd, "the changed paths as JSON")
	return cmd
}

func runApply(o *applyOptions, name string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	if err := inTree(rec); err != nil {
		return err
	}
	done := std.progress().busy("applying")
	changed, inGit, err := derive.Apply(rec, o.reverse)
	done()
	if conflict := (*files.ConflictError)(nil); errors.As(err, &conflict) {
		sayOtherKey(rec, len(conflict.Conflicts), std)
	}
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"changed": nonNil(changed), "reverse": o.reverse, "left_in_git": inGit})
	}
	for _, path := range changed {
		visible.Fprintln(std.out, path)
	}
	if inGit > 0 {
		std.say("%s in .git left as they are: commits are not undone", plural(inGit, "file", "files"))
	}
	return std.say("%s changed in %s", plural(len(changed), "path", "paths"), rec.Manifest.Roots.Tree)
}

// inTree refuses a recording of another work tree than that of the working directory: a recording that came from elsewhere
// must not say where files are written.
func inTree(rec *recording.Recording) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	want := rec.Manifest.Roots.Tree
	if want == "" {
		return fmt.Errorf("%s: %w", rec.Dir, derive.ErrNoTree)
	}
	if filepath.Dir(lib.Dir) != want {
		return fmt.Errorf("the recording is of the work tree %s, and this is %s: run apply in that tree", want, filepath.Dir(lib.Dir))
	}
	return nil
}

// nonNil makes an absent list an empty one in JSON.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func newRestoreCommand(std *console) *cobra.Command {
	cmd := command("restore", "REC DIR", func(_ *cobra.Command, args []string) error { return runRestore(args[0], args[1], std) })
	std.jsonFlag(cmd, "what was left out as JSON")
	return cmd
}

func runRestore(name, dir string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	done := std.progress().busy("restoring")
	left, err := derive.Restore(rec, dir)
	done()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"directory": dir, "left_out": nonNil(left)})
	}
	for _, path := range left {
		std.say("left out, it holds a secret: %s", path)
	}
	sayOtherKey(rec, len(left), std)
	return std.say("restored into %s", dir)
}

// sayOtherKey says of a recording some of whose files held secrets that this machine has not the key which tells them.
func sayOtherKey(rec *recording.Recording, files int, std *console) {
	if files == 0 {
		return
	}
	if said := rec.OtherKey(""); said != "" {
		std.say("%s", said)
	}
}
