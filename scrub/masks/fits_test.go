package masks_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		mask, was, now string
		want           bool
	}{
		{"temp-name", "agent-x7gh29kd", "agent-abcdefgh", true},
		{"temp-name", "abcdefgh", "ab_defgh", true},
		{"temp-name", "aBcDeF", "abcdef", true},
		{"temp-name", "123456789", "987654321", true},
		{"temp-name", "report", "others", false},
		{"id", "abcdefghijklmnopqrstuvwx", "a1cdefghijklmnopqrstuvwx", true},
		{"id", "executor", "function", false},
		{"uuid", "x", "y", true},
	} {
		if got := masks.Fits(tt.mask, tt.was, tt.now); got != tt.want {
			t.Errorf("Fits(%q, %q, %q) = %v", tt.mask, tt.was, tt.now, got)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for _, tt := range []struct {
		before, text string
		ms           float64
		round        bool
	}{
		{"stop in ", "9000 ms", 9000, true},
		{"in ", "5 seconds", 5000, false},
		{"in ", "0.02 seconds", 20, false},
		{"took ", "1m3.5s", 63500, false},
		{"took ", "1234ms", 1234, false},
		{"", "500us", 0.5, true},
		{`"duration_ms": `, "1234", 1234, false},
		{`"elapsed_seconds": `, "300", 300_000, true},
		{`"duration_milliseconds": `, "417", 417, false},
		{`"sec_elapsed_ms":`, "417", 417, false},
		{`\"total_duration\": `, "5000000", 5, true},
	} {
		b := []byte(tt.before + tt.text + " more")
		ms, round := masks.Milliseconds(b, len(tt.before), len(tt.before)+len(tt.text))
		if ms != tt.ms || round != tt.round {
			t.Errorf("Milliseconds(%q) = %v, %v; want %v, %v", tt.text, ms, round, tt.ms, tt.round)
		}
	}
}

// TestByPlace: what names an id or a temporary directory is masked whatever its letters are.
func TestByPlace(t *testing.T) {
	m := masks.New(&maskOptions)
	for in, want := range map[string]string{
		"/tmp/agent-x7gh29kd/out":    "/tmp/agent-<temp-name>/out",
		"/tmp/agent-abcdefgh/out":    "/tmp/agent-<temp-name>/out",
		"/tmp/agent-ab_defgh":        "/tmp/agent-<temp-name>",
		"/tmp/agent-_bcdefgh.json":   "/tmp/agent-<temp-name>.json",
		"/tmp/tmp.abcdefghij":        "/tmp/tmp.<temp-name>",
		"/run/t/abcdefgh/x_y":        "<temp>/<temp-name>/x_y",
		"/tmp/a/screenshots/b":       "/tmp/a/screenshots/b",
		"/tmp/_":                     "/tmp/_",
		"call_abcdefghijklmnopqrstu": "call_<id>",
		"call_a1cdefghijklmnopqrstu": "call_<id>",
		"msg_12345678":               "msg_<id>",
		"call_get_weather, run_it":   "call_get_weather, run_it",
	} {
		if got := string(m.Mask([]byte(in))); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}
