package files

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// TestLongPatchByGit writes the sections of random files as those of long ones, and lets git apply take them forth and back.
func TestLongPatchByGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	lower(t, &longText, 0)
	line := rapid.SampledFrom([]string{"a\n", "b\n", "\n", "a long line\n", strings.Repeat("y", 1000), "\x00\n", "end"})
	content := rapid.Map(rapid.SliceOfN(line, 0, 12), func(lines []string) string { return strings.Join(lines, "") })
	rapid.Check(t, func(rt *rapid.T) {
		before, after := model{}, model{}
		for i := range 3 {
			name, state := fmt.Sprintf("f%d", i), rapid.IntRange(0, 3).Draw(rt, "state")
			if state != 1 {
				before[name] = content.Draw(rt, "before")
			}
			if state != 2 {
				after[name] = content.Draw(rt, "after")
			}
			if state == 3 {
				after[name] = "*" + before[name] // the mode too, and nothing else
			}
		}
		was, is, store := twoTrees(t, before, after)
		patch := filepath.Join(t.TempDir(), "workspace.diff")
		var b bytes.Buffer
		must(t, WritePatch(&b, Changes(was, is), store))
		if b.Len() == 0 {
			return
		}
		must(t, os.WriteFile(patch, b.Bytes(), 0o644))
		work := filepath.Join(t.TempDir(), "w")
		_, err := Restore(was, store, work)
		must(t, err)
		runGit(t, git, work, "apply", "--whitespace=nowarn", patch)
		sameForGit(rt, snap(t, work, nil), is)
		runGit(t, git, work, "apply", "--whitespace=nowarn", "-R", patch)
		sameForGit(rt, snap(t, work, nil), was)
	})
}

// TestPatchOfLongFiles: a change in the middle is a short hunk.
func TestPatchOfLongFiles(t *testing.T) {
	store, err := cas.OpenDir(t.TempDir(), nil)
	must(t, err)
	entry := func(content string) *Entry {
		d, err := store.Put([]byte(content))
		must(t, err)
		return &Entry{Mode: Regular | 0o644, Digest: d, Size: int64(len(content))}
	}
	lines := strings.Repeat("a line of text that is as long as they are\n", 400_000)
	middle := strings.Replace(lines[:9<<20]+"one more\n"+lines[9<<20:], "more\n", "more or less\n", 1)
	c := []Change{
		{Path: "middle", Before: entry(lines), After: entry(middle)},
		{Path: "new", After: entry(middle + "n")},
		{Path: "other", Before: entry("\x00" + lines), After: entry(lines)},
	}
	patches := make([]bytes.Buffer, len(c))
	for i := range c {
		must(t, WritePatch(&patches[i], c[i:i+1], store))
	}
	if want := "one more or less\n"; patches[0].Len() > 1000 || !strings.Contains(patches[0].String(), want) {
		t.Errorf("a change in the middle makes %d bytes, want a hunk with %q:\n%.1000s", patches[0].Len(), want, patches[0].String())
	}
	if want := "\\ No newline at end of file\n"; !strings.HasSuffix(patches[1].String(), want) || patches[1].Len() < len(middle) {
		t.Errorf("a new file makes %d bytes", patches[1].Len())
	}
	if want := "GIT binary patch\n"; !strings.Contains(patches[2].String(), want) {
		t.Errorf("no %q in %.500s", want, patches[2].String())
	}
}
