package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

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
	Why     string `json:"why,omitempty"`
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
