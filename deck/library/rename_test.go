package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestRenamesReplaceNothing has many rename to one name: one does, the others are told, and nothing is lost.
func TestRenamesReplaceNothing(t *testing.T) {
	const many = 8
	for name, rename := range map[string]func(from, to string) error{"kernel": renameNew, "checked": renameChecked} {
		for what, mk := range map[string]func(path string) error{
			"file":      func(path string) error { return os.WriteFile(path, []byte(path), 0o600) },
			"directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "inside"), 0o700) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				for range 50 {
					dir := t.TempDir()
					to := filepath.Join(dir, "to")
					var won atomic.Int32
					var ready, done sync.WaitGroup
					ready.Add(many)
					for i := range many {
						from := filepath.Join(dir, fmt.Sprint(i))
						if err := mk(from); err != nil {
							t.Fatal(err)
						}
						done.Go(func() {
							ready.Done()
							ready.Wait()
							switch err := rename(from, to); {
							case err == nil:
								won.Add(1)
							case !errors.Is(err, fs.ErrExist) || !recording.Exists(from):
								t.Errorf("%v, there still: %t", err, recording.Exists(from))
							}
						})
					}
					done.Wait()
					if left, err := os.ReadDir(dir); err != nil || won.Load() != 1 || len(left) != many {
						t.Fatalf("%d won, %d of %d are left, %v", won.Load(), len(left), many, err)
					}
				}
			})
		}
	}
}
