package masks_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// TestTrace: what is traced is what is masked, and each fact is said with where it stood.
func TestTrace(t *testing.T) {
	opts := maskOptions
	opts.Extra = []masks.Extra{
		{Name: "build", Pattern: regexp.MustCompile(`build ([0-9]+)`)},
		{Name: "noise", Pattern: regexp.MustCompile(`(?m)^noise.*\n`), Drop: true},
		{Name: "stamp", Pattern: regexp.MustCompile(`at <time>`)},
		{Name: "tail", Pattern: regexp.MustCompile(`of <stamp>, (.*) end`)},
	}
	m := masks.New(&opts)
	for in, want := range map[string]string{
		"":                                    "",
		"nothing":                             "",
		"on 2026-11-21, build 17, pid 9":      "date=2026-11-21 build=17 pid=9",
		"noise 2026-11-21\nbuild 1":           "noise=noise 2026-11-21\n build=1",
		"done at 07:08:09, in 5 ms":           "stamp=at 07:08:09 duration=5 ms",
		"of at 07:08:09, took 3 ms then end":  "stamp=at 07:08:09 tail=took 3 ms then",
		"cd /home/ann/proj; build 2; build 3": "worktree=/home/ann/proj build=2 build=3",
	} {
		masked, taken := m.Trace([]byte(in))
		if wanted := m.Mask([]byte(in)); string(masked) != string(wanted) {
			t.Errorf("Trace(%q) masks %q, Mask %q", in, masked, wanted)
		}
		var got []string
		for _, k := range taken {
			got = append(got, k.Mask+"="+in[k.Start:k.End])
			if named := "<" + k.Mask + ">"; k.Mask != "noise" && !strings.HasPrefix(string(masked[k.At:]), named) {
				t.Errorf("Trace(%q): %s is said to stand at %d of %q", in, named, k.At, masked)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("Trace(%q) took %q, want %q", in, s, want)
		}
	}
}
