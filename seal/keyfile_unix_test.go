//go:build unix

package seal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
)

// TestKeysOfAPipe: a FIFO in the place of seal.pub, which nobody writes to, keeps no recorder waiting; a pipe that somebody writes to,
// as a shell's <(…) is, gives its keys.
func TestKeysOfAPipe(t *testing.T) {
	dir := t.TempDir()
	k, err := seal.LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(dir, seal.PublicKeyFile)
	if err := errors.Join(os.Remove(public), syscall.Mkfifo(public, 0o600)); err != nil {
		t.Skip(err)
	}
	if _, err := seal.LoadKey(dir); !errors.Is(err, seal.ErrKeyFile) {
		t.Errorf("%v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		w.WriteString(k.Public().String() + "\n")
		w.Close()
	}()
	keys, err := seal.ReadPublicKeys(fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil || len(keys) != 1 || keys[0] != k.Public() {
		t.Errorf("%v, %v", keys, err)
	}
}
