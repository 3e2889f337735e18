package boundedregexp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

func TestPatternsAreRefusedBeforeAnythingIsMadeOfThem(t *testing.T) {
	for _, tt := range []struct{ name, pattern, want string }{
		{"not closed", "(a", "RE2"},
		{"looks ahead", "(?=a)", "RE2"},
		{"refers back", `(a)\1`, "RE2"},
		{"a repeat too many", "a{1001}", "RE2"},
		{"repeats of repeats", "((a{30}){30}){30}", "RE2"},
		{"many repeats", strings.Repeat("a{900}", 6), "steps"},
		{"classes", strings.Repeat(`[\pL\pN]{100}`, 20), "steps"},
		{"long", strings.Repeat("a", boundedregexp.MaxPattern+1), "bytes"},
		{"deep", strings.Repeat("(", 5000) + strings.Repeat(")", 5000), "RE2"},
		{"repeats of repeats that RE2 takes", "((a{10}){30}b{300}){3}" + strings.Repeat("(c{30}){30}", 5), "steps"},
		{"optional repeats", strings.Repeat("(a?){500}", 20), "steps"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := cputime.Spent()
			_, err := boundedregexp.Compile(tt.pattern)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && len(err.Error()) > 20<<10 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
			if took := cputime.Spent() - began; took > time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestATextIsMatchedOrTooLong(t *testing.T) {
	r, err := boundedregexp.Compile(`^(a|aa)+b{100}$`)
	if err != nil {
		t.Fatal(err)
	}
	if yes, err := r.Match(strings.Repeat("a", 1000) + strings.Repeat("b", 100)); err != nil || !yes {
		t.Error(yes, err)
	}
	if yes, err := r.Match("a"); err != nil || yes {
		t.Error(yes, err)
	}
	if _, err := r.Match(strings.Repeat("a", r.Longest()+1)); err == nil {
		t.Error("a text that is too long was matched")
	}
	if r.Steps() < 100 || r.String() != `^(a|aa)+b{100}$` {
		t.Error(r.Steps(), r.String())
	}
}
