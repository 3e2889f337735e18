package names_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

func TestOrdinary(t *testing.T) {
	for v, want := range map[string]bool{
		"accepted": true, "dark-mode": true, "us-east-1": true, "eu-west-1a": true, "en-US,en;q=0.9": true, "/dashboard/home": true,
		"%2Fdashboard%2Fhome%3Fpage%3D2": true, "1700000000000": true, "true": true, "English-US": true, "Germany_DE": true,
		`"completed"`: true, "Europe/Berlin": true, "2024-05-17": true, "newPassword": true, "MIT-License": true,

		"aB3-aB3-aB3": false, "Zx9QvT2m": false, "ab12-cd34-ef56": false, "f3b0c44298fc1c149afbf4c8996fb924": false,
		"3f2504e0-4f89-11d3-9a0c-0305e82cbb56": false, "83749283749283749": false, "qwkjhzxmnbvpoqwuz": false,
		"eyJ1IjoxfQ.ZkQ-9aT2mKw7Lp4Rn": false, "s%3AZkQ9aT2mKw7.Lp4Rn": false, "JBSWYDPEHPKPXPAB": false, "hunter2hunter2": false,
		strings.Repeat("word-", 14): false,
	} {
		if got := names.Ordinary(v); got != want {
			t.Errorf("%s: %v", v, got)
		}
	}
}
