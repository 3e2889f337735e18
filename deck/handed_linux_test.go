package deck_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// TestHandedDown: which number a pipe has that a child is left is no part of its arguments; any other number is.
func TestHandedDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	res, _ := b.sh("echo a | (exec 7<&0; /bin/echo 7 >/dev/null; :)")
	for script, want := range map[string]fidelity.Category{
		"echo a | (exec 8<&0; /bin/echo 8 >/dev/null; :)": "",
		"echo a | (exec 7<&0; /bin/echo 8 >/dev/null; :)": fidelity.ProcessArgs,
	} {
		b.through[2] = script
		argv, _ := b.self("")
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		if want == "" && !v.Faithful() || want != "" && (v.Faithful() || v.Divergences[0].Category != want) {
			t.Errorf("%s:\n%s", script, verdictText(t, v))
		}
	}
}
