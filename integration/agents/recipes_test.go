//go:build agents

package agents

import (
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// program is what the agent's command line begins with; the test is skipped where that is not installed.
func (r *Recipe) program(t *testing.T, modules string) []string {
	t.Helper()
	words, err := r.Program(modules)
	if err != nil {
		t.Skip(err)
	}
	return words
}

// prepare puts into a box what the agent needs.
func (r *Recipe) prepare(b *run.Box) {
	b.Setenv(r.Key, r.Value)
	for name, value := range r.Env {
		b.Setenv(name, value)
	}
	for path, content := range r.Files {
		b.WriteFile(filepath.Join(b.Home, path), content)
	}
	b.WriteFile(filepath.Join(b.Home, r.Rules), rules)
	b.Setenv("HTTPS_PROXY", Nowhere)
	b.Setenv("HTTP_PROXY", Nowhere)
}
