package run

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// Running returns the command lines of the processes of this machine whose HOME is that of the box.
func (b *Box) Running() []string {
	b.t.Helper()
	var found []string
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, path := range all {
		env, err := os.ReadFile(path) // one that may not be read is another user's
		if err != nil || !slices.ContainsFunc(bytes.Split(env, []byte{0}), b.isHome) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil && len(line) > 0 { // else it has just ended
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

func (b *Box) isHome(variable []byte) bool { return string(variable) == "HOME="+b.Home }
