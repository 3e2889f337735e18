package team

import (
	"slices"
	"strings"
	"testing"
)

// TestShortened: a row has the first of a command line, whatever the recording has.
func TestShortened(t *testing.T) {
	long := strings.Repeat("x", maxArgv)
	for _, tt := range []struct{ in, want []string }{
		{[]string{"claude", "-p", "hi"}, []string{"claude", "-p", "hi"}},
		{[]string{"a", long, "b"}, []string{"a", long[:maxArgv-3] + "…"}},
		{[]string{long, long}, []string{long[:maxArgv-1] + "…"}},
		{slices.Repeat([]string{"1234567"}, 1<<20), append(slices.Repeat([]string{"1234567"}, maxArgv/8), "…")},
	} {
		got := shortened(tt.in)
		if !slices.Equal(got, tt.want) {
			t.Errorf("shortened(%.20q…) has %d arguments, the last %.20q; want %d, %.20q", tt.in[0], len(got), got[len(got)-1], len(tt.want), tt.want[len(tt.want)-1])
		}
	}
}

// TestBoundsOfTags: what is too much is refused before the database is asked.
func TestBoundsOfTags(t *testing.T) {
	if CheckTags(slices.Repeat([]string{"nightly"}, maxTags)...) != nil || CheckTags(slices.Repeat([]string{"nightly"}, maxTags+1)...) == nil {
		t.Errorf("want %d tags at most", maxTags)
	}
}
