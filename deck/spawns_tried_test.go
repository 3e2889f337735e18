package deck

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// TestProgramAlongPATH: the tape names the program where it was found, not where it was looked for first, nor what it executed later.
func TestProgramAlongPATH(t *testing.T) {
	argv := []string{"npx", "server"}
	w := &spawns{s: &session{}, first: make(map[uint64]*jail.Spawn), found: make(map[uint64]string)}
	sp := &jail.Spawn{Key: 7, Path: "/usr/local/bin/npx", Argv: argv}
	w.first[sp.Key] = sp
	if got := w.opened(sp, 0).Latest(); got != "/usr/local/bin/npx" {
		t.Errorf("found at once: %s", got)
	}
	for _, next := range []*jail.Spawn{
		{Key: 7, Path: "/usr/bin/npx", Argv: argv}, {Key: 7, Path: "/usr/bin/node", Argv: []string{"node", "server.js"}},
		{Key: 7, Path: "/opt/npx", Argv: []string{"npx", "another"}}, {Key: 8, Path: "/else/npx", Argv: argv},
	} {
		w.tried(next)
	}
	if got := w.opened(sp, 0).Latest(); got != "/usr/bin/npx" {
		t.Errorf("found at the second try: %s", got)
	}
}
