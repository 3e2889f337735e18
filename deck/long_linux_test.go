package deck_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// TestLongFiles: a file that is too large to keep compares by what it holds, and by its mode.
func TestLongFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const script = "truncate -s 65M big; printf one | dd of=big bs=1 seek=60000000 conv=notrunc status=none"
	res, _ := b.sh(script)
	v, _ := b.replay(res.Recording, nil)
	b.green(v)
	for name, changed := range map[string]string{"content": strings.ReplaceAll(script, "one", "two"), "length": strings.ReplaceAll(script, "65M", "66M"), "mode": script + "; chmod +x big", "none": "true"} {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: []string{"/bin/sh", "-c", changed}})
		got := ""
		for _, d := range v.Divergences {
			if d.Category == fidelity.FileWriteHash && strings.Contains(d.Message, "big, which is too large") {
				got = d.Recorded
			}
		}
		if !strings.HasPrefix(got, "68157440 bytes, ") {
			t.Errorf("%s: %s", name, verdictText(t, v))
		}
	}
}
