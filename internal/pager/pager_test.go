package pager_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/pager"
)

// shown writes lines through a pager of 5 rows and 20 columns, and returns what its terminal, a file here, got.
func shown(t *testing.T, command string, lines ...string) (string, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := pager.New(f, command, 5, 20)
	for _, l := range lines {
		var n int
		if n, err = p.Write([]byte(l + "\n")); err != nil {
			break
		}
		if n != len(l)+1 {
			t.Errorf("%d bytes of %d were written", n, len(l)+1)
		}
	}
	if closed := p.Close(); closed != nil {
		t.Error(closed)
	}
	b, errRead := os.ReadFile(f.Name())
	if errRead != nil {
		t.Fatal(errRead)
	}
	return string(b), err
}

func TestOnlyWhatIsLongerThanTheTerminalIsPaged(t *testing.T) {
	const mark = "sed s/^/paged:/"
	for _, tt := range []struct {
		name  string
		lines []string
		paged bool
	}{
		{"short", []string{"a", "b", "c"}, false},
		{"long", []string{"a", "b", "c", "d", "e"}, true},
		{"wide", []string{strings.Repeat("a", 41), strings.Repeat("b", 21)}, true},
		{"coloured", []string{"\x1b[31m" + strings.Repeat("ä", 20) + "\x1b[0m", "b", "c"}, false},
	} {
		got, err := shown(t, mark, tt.lines...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		want := strings.Join(tt.lines, "\n") + "\n"
		if tt.paged {
			want = "paged:" + strings.Join(tt.lines, "\npaged:") + "\n"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
	}
}

func TestPagerThatQuitsEarlyEndsTheWriting(t *testing.T) {
	lines := make([]string, 100_000) // more than a pipe holds
	got, err := shown(t, "head -1", lines...)
	if !errors.Is(err, pager.ErrQuit) || got != "\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTextIsShownWithoutPagerThatIsNotThere(t *testing.T) {
	lines := strings.Split(strings.Repeat("a ", 9)+"a", " ")
	if got, err := shown(t, "no-such-pager", lines...); err != nil || got != strings.Join(lines, "\n")+"\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, pager.Default},
		{map[string]string{"PAGER": "most"}, "most"},
		{map[string]string{"PAGER": "most", "TAPEDECK_PAGER": "less -X"}, "less -X"},
		{map[string]string{"PAGER": "most", "TAPEDECK_PAGER": ""}, ""},
		{map[string]string{"PAGER": "cat"}, ""},
	} {
		got := pager.Command(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.env, got, tt.want)
		}
	}
}
