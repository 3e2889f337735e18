package overlay_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// state says what stands below dir as Git sees it: files with their content and the owner's x, links; no directories.
func state(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out.WriteString(filepath.ToSlash(name) + " " + map[bool]string{true: "x"}[info.Mode()&0o100 != 0])
		if target, err := os.Readlink(path); err == nil {
			out.WriteString(" -> " + target + "\n")
			return nil
		}
		b, err := os.ReadFile(path)
		out.WriteString("\n" + string(b) + "\n")
		return err
	}))
	return out.String()
}

// gitApply has Git apply a patch to dir.
func gitApply(t testing.TB, dir string, patch []byte, flags ...string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	cmd := exec.Command(git, append([]string{"apply", "--whitespace=nowarn"}, flags...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nof\n%s", err, out, patch)
	}
}

// everyChange is a directory, and what a program does to it, so that the patch has everything in it that one can have.
var everyChange = map[string]string{
	"text": strings.Repeat("line\n", 50) + "end\n", "noend": "a\nb", "gains": "a\nb", "loses": "a\nb\n", "binary": "a\x00b\xff\n",
	"becomes-binary": "text\n", "mode.sh": "#!/bin/sh\n", "deleted": "gone\n", "deleted-empty": "", "old": "moved\n", "to-empty": "x\n",
	"dir/a": "a\n", "dir/sub/b": "b\n", "same": "same\n", "with space": "x\n", "file-to-dir": "x\n", "dir-to-file/x": "x\n",
	"link": "-> text", "link-to-file": "-> text", "file-to-link": "x\n", "ümläut": "x\n", "quo\"te\\back\ttab": "x\n", "-dash": "x\n",
	"crlf": "a\r\nb\r\n", "trailing ": "x\n", "empty-dir/": "",
}

func changeEverything(t testing.TB, f *overlay.FS) {
	t.Helper()
	for name, text := range map[string]string{
		"text": strings.Repeat("line\n", 20) + "new\n" + strings.Repeat("line\n", 30) + "the end\n", "noend": "a\nc", "gains": "a\nb\n",
		"loses": "a\nb", "binary": "a\x00c\xfe", "becomes-binary": "\x00\x01\x02", "to-empty": "", "new": "new\n", "new-empty": "",
		"new-noend": "x", "made/deep/er": "x\n", "with space": "y\n", "ümläut": "y\n", "quo\"te\\back\ttab": "y\n", "-dash": "y\n",
		"crlf": "a\r\nc\r\n", "trailing ": "y\n", "same": "same\n", "nöw \"x\"\n": "odd name\n", "日本": "x\n",
	} {
		must(t, f.WriteFile(name, []byte(text), 0o644))
	}
	must(t, f.WriteFile("new.sh", []byte("#!/bin/sh\n"), 0o755))
	must(t, f.WriteFile("new.bin", bytes.Repeat([]byte{0, 1, 2, 250}, 3000), 0o644))
	must(t, f.Chmod("mode.sh", 0o755))
	for _, name := range []string{"deleted", "deleted-empty", "file-to-dir", "dir-to-file/x", "dir-to-file", "link", "link-to-file", "file-to-link"} {
		must(t, f.Remove(name))
	}
	must(t, f.Rename("old", "renamed"))
	must(t, f.Rename("dir", "moved"))
	must(t, f.WriteFile("file-to-dir/x", []byte("x\n"), 0o644))
	must(t, f.WriteFile("dir-to-file", []byte("x\n"), 0o644))
	must(t, f.Symlink("same", "link"))
	must(t, f.WriteFile("link-to-file", []byte("file\n"), 0o644))
	must(t, f.Symlink("text", "file-to-link"))
	must(t, f.Symlink("../text", "made/link"))
	must(t, f.WriteFile("brief", []byte("x"), 0o644))
	must(t, f.Remove("brief"))
}

// copyOf is dir as it is, elsewhere.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	f := newFS(t, &overlay.Options{Dir: dir})
	must(t, f.Copy(to))
	return to
}

func skipWindows(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("names and links that Windows does not have")
	}
}

// TestGitAppliesThePatch has Git apply it to the directory, which is what the tree is then, and back.
func TestGitAppliesThePatch(t *testing.T) {
	skipWindows(t)
	dir := hostDir(t, everyChange)
	f := newFS(t, &overlay.Options{Dir: dir})
	changeEverything(t, f)
	patch, err := f.Diff()
	must(t, err)
	want := filepath.Join(t.TempDir(), "want")
	must(t, f.Copy(want))
	before := state(t, dir)
	applied := copyOf(t, dir)
	gitApply(t, applied, patch)
	if a, b := state(t, want), state(t, applied); a != b {
		t.Errorf("the tree is\n%s\nGit made\n%s", a, b)
	}
	gitApply(t, applied, patch, "-R")
	if b := state(t, applied); b != before {
		t.Errorf("the directory was\n%s\nGit gave back\n%s", before, b)
	}
	if after := state(t, dir); after != before {
		t.Errorf("the directory changed from\n%s\nto\n%s", before, after)
	}
	if bytes.Contains(patch, []byte("brief")) || bytes.Contains(patch, []byte("a/same b/same")) {
		t.Error("what did not change is in the patch")
	}
}

// TestGitAppliesThePatchOfAnEmptyTree makes the whole tree.
func TestGitAppliesThePatchOfAnEmptyTree(t *testing.T) {
	f := newFS(t, nil)
	if patch, err := f.Diff(); err != nil || len(patch) > 0 {
		t.Errorf("the patch of nothing is %q, %v", patch, err)
	}
	must(t, f.WriteFile("a/b", []byte("x\n"), 0o644))
	must(t, f.WriteFile("c", nil, 0o755))
	patch, err := f.Diff()
	must(t, err)
	dir := t.TempDir()
	gitApply(t, dir, patch)
	if got := state(t, dir); got != "a/b \nx\n\nc x\n\n" {
		t.Errorf("Git made %q", got)
	}
}

// TestDiffIsTheSameTwice, and in the middle of a run.
func TestDiffIsTheSameTwice(t *testing.T) {
	skipWindows(t)
	f := newFS(t, &overlay.Options{Dir: hostDir(t, everyChange)})
	changeEverything(t, f)
	a, err := f.Diff()
	must(t, err)
	b, err := f.Diff()
	must(t, err)
	if !bytes.Equal(a, b) || len(a) == 0 {
		t.Errorf("%s\nthen\n%s", a, b)
	}
}

// TestDiffOfWhatOthersChangedToo cannot say what the file was.
func TestDiffOfWhatOthersChangedToo(t *testing.T) {
	dir := hostDir(t, map[string]string{"a": "a"})
	f := newFS(t, &overlay.Options{Dir: dir})
	must(t, f.WriteFile("a", []byte("mine"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("theirs"), 0o644))
	if _, err := f.Diff(); !errors.Is(err, overlay.ErrStale) || !strings.Contains(err.Error(), "a:") {
		t.Errorf("got %v", err)
	}
	if err := f.WriteBack(); !errors.Is(err, overlay.ErrStale) {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "theirs" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWriteBack brings it all into the directory.
func TestWriteBack(t *testing.T) {
	skipWindows(t)
	dir := hostDir(t, everyChange)
	f := newFS(t, &overlay.Options{Dir: dir})
	changeEverything(t, f)
	must(t, f.WriteBack())
	want := filepath.Join(t.TempDir(), "want")
	must(t, f.Copy(want))
	if a, b := state(t, want), state(t, dir); a != b {
		t.Errorf("the tree is\n%s\nthe directory\n%s", a, b)
	}
}

// TestWriteBackOfANewFileInOnesPlace writes nothing at all.
func TestWriteBackOfANewFileInOnesPlace(t *testing.T) {
	dir := hostDir(t, map[string]string{"a": "a"})
	f := newFS(t, &overlay.Options{Dir: dir})
	must(t, f.WriteFile("new", []byte("mine"), 0o644))
	must(t, f.WriteFile("a", []byte("mine"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "new"), []byte("theirs"), 0o644))
	var conflict *files.ConflictError
	if err := f.WriteBack(); !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "new" {
		t.Errorf("got %v", err)
	}
	if got := state(t, dir); got != "a \na\nnew \ntheirs\n" {
		t.Errorf("the directory holds %q", got)
	}
}

// TestWriteBackLeavesGitAlone, and says so.
func TestWriteBackLeavesGitAlone(t *testing.T) {
	dir := hostDir(t, map[string]string{".git/HEAD": "ref\n"})
	f := newFS(t, &overlay.Options{Dir: dir})
	must(t, f.WriteFile(".git/HEAD", []byte("changed\n"), 0o644))
	must(t, f.WriteFile("a", []byte("a"), 0o644))
	if err := f.WriteBack(); err == nil || !strings.Contains(err.Error(), ".git/HEAD") {
		t.Errorf("got %v", err)
	}
	if got := state(t, dir); got != ".git/HEAD \nref\n\na \na\n" {
		t.Errorf("the directory holds %q", got)
	}
}

func TestWriteBackNeedsADirectory(t *testing.T) {
	if err := newFS(t, nil).WriteBack(); err == nil || !strings.Contains(err.Error(), "Options.Dir") {
		t.Errorf("got %v", err)
	}
}
