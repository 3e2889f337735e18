package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestIgnoreRules(t *testing.T) {
	tests := []struct {
		rules, path string
		dir, want   bool
	}{
		{"*.o", "a/b.o", false, true},
		{"/a.o", "b/a.o", false, false},
		{"a/", "a", false, false},
		{"a/", "x/a", true, true},
		{"*.o\n!keep.o", "keep.o", false, false},
		{"**/x/*.c", "x/y.c", false, true},
		{"**/x/*.c", "zx/y.c", false, false},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/p/q/b", false, true},
		{"a/**", "a", true, false},
		{`\#x`, "#x", false, true},
		{"#x", "#x", false, false},
		{"x\\ ", "x ", false, true},
		{"x  ", "x", false, true},
		{"[!a-c]x", "dx", false, true},
		{"[[:digit:]]", "7", false, true},
		{"[a", "[a", false, false},
		{"a?c", "a/c", false, false},
		{"\ufeffa\r\nb\r\n", "a", false, true},
		{strings.Repeat("*a", 40), strings.Repeat("a", 200) + "b", false, false},
	}
	for _, tt := range tests {
		if got := (rulesIn{sets: []*ruleSet{parseRules("", []byte(tt.rules))}}).ignores(tt.path, tt.dir); got != tt.want {
			t.Errorf("%q on %q: ignored %v, want %v", tt.rules, tt.path, got, tt.want)
		}
	}
}

// TestIgnoreAgainstGit compares random rules with what git check-ignore says about every path of a small tree.
func TestIgnoreAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	dir := t.TempDir()
	runGit(t, git, dir, "init", "-q")
	paths := ignoreTree(t, dir)
	rng := rand.New(rand.NewPCG(7, 9))
	rounds := 60
	if os.Getenv("TAPEDECK_LONG") != "" {
		rounds = 1000
	}
	for round := range rounds {
		top, sub, excl := randomRules(rng), randomRules(rng), randomRules(rng)
		writeFile(t, filepath.Join(dir, ".gitignore"), top)
		writeFile(t, filepath.Join(dir, "a", ".gitignore"), sub)
		writeFile(t, filepath.Join(dir, ".git", "info", "exclude"), excl)
		want := gitIgnored(t, git, dir, paths)
		got := walkIgnored([]*ruleSet{parseRules("", []byte(excl)), parseRules("", []byte(top)), parseRules("a", []byte(sub))}, paths)
		for _, p := range paths {
			if got[p] != want[p] {
				t.Fatalf("round %d: %q: ignored %v, git says %v\ntop %q\na %q\nexclude %q", round, p, got[p], want[p], top, sub, excl)
			}
		}
	}
}

func ignoreTree(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{"a", "b", "ab", "a.o", "[a", "#a", "a b", "b-", "!a"}
	var out []string
	var fill func(at string, depth int)
	fill = func(at string, depth int) {
		for i, n := range names {
			p := filepath.Join(at, n)
			if i < 3 && depth < 3 {
				if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
					t.Fatal(err)
				}
				out = append(out, p)
				fill(p, depth+1)
				continue
			}
			writeFile(t, filepath.Join(dir, p), "")
			out = append(out, p)
		}
	}
	fill("", 0)
	return out
}

func randomRules(rng *rand.Rand) string {
	atoms := []string{"a", "b", "ab", "a.o", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[]a]",
		"[a-]", `\a`, `\*`, `\[`, "#a", "***", " ", `\ `, "-", "[", "!", `\`, "**/", "/**", "[a[:digit:]-z]", "[[:nope:]]"}
	var b strings.Builder
	for range 1 + rng.IntN(4) {
		if rng.IntN(4) == 0 {
			b.WriteByte('!')
		}
		for range 1 + rng.IntN(5) {
			b.WriteString(atoms[rng.IntN(len(atoms))])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func gitIgnored(t *testing.T, git, dir string, paths []string) map[string]bool {
	t.Helper()
	cmd := exec.Command(git, "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := cmd.Output()
	if err != nil && len(out) > 0 {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for p := range bytes.SplitSeq(out, []byte{0}) {
		got[string(p)] = true
	}
	return got
}

// walkIgnored walks as a snapshot does: what lies in an ignored directory is ignored.
func walkIgnored(sets []*ruleSet, paths []string) map[string]bool {
	isDir := make(map[string]bool)
	for _, p := range paths {
		isDir[parentOf(p)] = true
	}
	got := make(map[string]bool)
	for _, p := range paths {
		if got[parentOf(p)] {
			got[p] = true
			continue
		}
		holds := sets
		if !under(p, "a") || p == "a" {
			holds = sets[:2]
		}
		got[p] = rulesIn{sets: holds}.ignores(p, isDir[p])
	}
	return got
}

func runGit(t *testing.T, git, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(git, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(fmt.Errorf("git %v: %w\n%s", args, err, out))
	}
	return string(out)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
