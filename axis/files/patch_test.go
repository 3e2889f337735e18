package files

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"pgregory.net/rapid"
)

func TestPatchText(t *testing.T) {
	before, after, store := twoTrees(t,
		model{"edit": "a\nb\nc\n", "gone": "x", "mode": "m\n", "sp ace": "a\n", ".git/HEAD": "x", ".env": "A=1"},
		model{"edit": "a\nB\nc\n", "mode": "*m\n", "sp ace": "b\n", "empty": "", "t\tab": "x\n", ".git/HEAD": "y", ".env": "A=2", "d/e": "/"})
	var buf bytes.Buffer
	must(t, WritePatch(&buf, Changes(before, after), store))
	want := `diff --git a/edit b/edit
index de980441c3ab03a8c07dda1ad27b8a11f39deb1e..7be73ce3c1b1cdaea86e8168dfee8575175953bf 100644
--- a/edit
+++ b/edit
@@ -1,3 +1,3 @@
 a
-b
+B
 c
diff --git a/empty b/empty
new file mode 100644
index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
diff --git a/gone b/gone
deleted file mode 100644
index c1b0730e0133447badcfd47fd144e254807b06e1..0000000000000000000000000000000000000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
\ No newline at end of file
diff --git a/mode b/mode
old mode 100644
new mode 100755
diff --git a/sp ace b/sp ace
index 78981922613b2afb6025042ff6bd878ac1994e85..61780798228d17af2d34fce4cfbdf35556832472 100644
--- a/sp ace	
+++ b/sp ace	
@@ -1 +1 @@
-a
+b
diff --git "a/t\tab" "b/t\tab"
new file mode 100644
index 0000000000000000000000000000000000000000..587be6b4c3f93f93c489c0111bba5596147a26cb
--- /dev/null
+++ "b/t\tab"
@@ -0,0 +1 @@
+x
`
	if diff := cmp.Diff(want, buf.String()); diff != "" {
		t.Error(diff)
	}
}

// TestPatchByGit lets git apply take random patches forth and back, and compares the trees.
func TestPatchByGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := genModel(rt, "tree")
		before, after, store := twoTrees(t, m.forGit(), mutate(rt, m).forGit())
		patch := filepath.Join(t.TempDir(), "workspace.diff")
		f, err := os.Create(patch)
		must(t, err)
		must(t, WritePatch(f, Changes(before, after), store))
		must(t, f.Close())
		if info, _ := os.Stat(patch); info.Size() == 0 {
			return
		}
		work := t.TempDir()
		_, err = Restore(before, store, filepath.Join(work, "w"))
		must(t, err)
		work = filepath.Join(work, "w")
		runGit(t, git, work, "apply", "--whitespace=nowarn", patch)
		sameForGit(rt, snap(t, work, &SnapOptions{Scrubber: fakeScrubber{}}), after)
		runGit(t, git, work, "apply", "--whitespace=nowarn", "-R", patch)
		sameForGit(rt, snap(t, work, &SnapOptions{Scrubber: fakeScrubber{}}), before)
	})
}

// forGit drops the empty directories, which no patch holds but which can stand in its way, and secret files. Links lead
// nowhere: git apply stumbles over one that leads to itself where it is to become a directory.
func (m model) forGit() model {
	out := m.open()
	maps.DeleteFunc(out, func(_, what string) bool { return what == "/" })
	for p, what := range out {
		if target, ok := strings.CutPrefix(what, "->"); ok {
			out[p] = "->nowhere/" + target
		}
	}
	return out
}

// sameForGit checks that Git would see no difference, secret files apart.
func sameForGit(t *rapid.T, got, want *Tree) {
	for _, c := range Changes(got, want) {
		if _, _, ok := c.sides(); ok && !c.IsSecret() {
			t.Errorf("%q is %s, want %s", c.Path, describe(c.Before), describe(c.After))
		}
	}
}

func TestPatchOfLongTextIsQuick(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	text := func() string {
		var b strings.Builder
		for b.Len() < 5<<20 {
			b.WriteString(strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(40)) + "\n")
		}
		return b.String()
	}
	began := time.Now()
	writeHunks(bufio.NewWriter(io.Discard), []byte(text()), []byte(text()))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the hunks of two texts of 5 MiB that share nothing took %v", took)
	} else {
		t.Log(took)
	}
}

// BenchmarkPatchOfNewFiles writes the patch of a work tree that a run filled.
func BenchmarkPatchOfNewFiles(b *testing.B) {
	store, err := cas.OpenDir(b.TempDir(), nil)
	must(b, err)
	var changes []Change
	total := int64(0)
	for i := range 2000 {
		text := strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 200)
		d, err := store.Put([]byte(text))
		must(b, err)
		changes = append(changes, Change{Path: fmt.Sprintf("d/f%04d", i), After: &Entry{Mode: Regular | 0o644, Digest: d, Size: int64(len(text))}})
		total += int64(len(text))
	}
	b.SetBytes(total)
	for b.Loop() {
		must(b, WritePatch(io.Discard, changes, store))
	}
}
