package deck_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["mountwriter"] = playMountWriter }

// playMountWriter adds to what it finds in the mounts below HOME and the work tree, makes a file there and removes one.
func playMountWriter([]string) int {
	for _, dir := range mountsBelow(os.Getenv("HOME"), ".") {
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return fail(err)
		}
		if _, err := f.WriteString("more\n"); err != nil {
			return fail(err)
		}
		f.Close()
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte("new"), 0o600); err != nil {
			return fail(err)
		}
		if err := os.Remove(filepath.Join(dir, "old")); err != nil {
			return fail(err)
		}
		now, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			return fail(err)
		}
		fmt.Printf("%s: %s", filepath.Base(dir), now)
	}
	return 0
}

func mountsBelow(home, tree string) []string {
	return []string{home + "/disk", home + "/disk/inner", home + "/bound", tree + "/memory"}
}

// homeOfMountsVar names, for a user who cannot mount, a directory in which layMounts made mounts.
const homeOfMountsVar = "DECK_TEST_MOUNTS"

// layMounts mounts file systems of user's below home and work in dir, and below one another.
func layMounts(t *testing.T, dir string, user int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "elsewhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, at := range mountsBelow(filepath.Join(dir, "home"), filepath.Join(dir, "work")) {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		from, kind, flags := "none", "tmpfs", uintptr(0)
		if filepath.Base(at) == "bound" {
			from, kind, flags = filepath.Join(dir, "elsewhere"), "", unix.MS_BIND
		}
		if err := unix.Mount(from, at, kind, flags, ""); err != nil {
			t.Skip("cannot mount here:", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, user, user)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMountsBelowHome: what a program writes into a mount below HOME or the work tree it writes on a replay too, and there the
// mount stays as it is.
func TestMountsBelowHome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := os.Getenv(homeOfMountsVar)
	if dir == "" {
		if os.Geteuid() != 0 {
			t.Skip("only root can mount on the host")
		}
		dir = t.TempDir()
		layMounts(t, dir, 0)
	}
	b.home, b.dir = filepath.Join(dir, "home"), filepath.Join(dir, "work")
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}
	mounts := mountsBelow(b.home, b.dir)
	for _, m := range mounts {
		put(t, filepath.Join(m, "log"), "begun\n")
		put(t, filepath.Join(m, "old"), "old\n")
	}
	res, out := b.record("mountwriter")
	if want := "begun\nmore\n"; res.Exit.Code != 0 || strings.Count(out, want) != len(mounts) {
		t.Fatalf("exit %+v: %s", res.Exit, out)
	}
	content := func() (out string) {
		for _, m := range mounts {
			out += listing(t, m)
		}
		return out
	}
	recorded := content()
	kept := filepath.Join(t.TempDir(), "kept")
	v, played := b.replay(res.Recording, &deck.ReplayOptions{Keep: kept})
	b.green(v)
	if played != out {
		t.Errorf("the replay printed %q, not %q", played, out)
	}
	if now := content(); now != recorded {
		t.Errorf("a replay changed what is mounted from\n%s\nto\n%s", recorded, now)
	}
	if got, err := os.ReadFile(filepath.Join(kept, "memory", "log")); string(got) != "begun\nmore\n" {
		t.Errorf("kept %q, %v", got, err)
	}
	for _, m := range mounts { // and however the disk looks now
		put(t, filepath.Join(m, "log"), "another\n")
	}
	v, played = b.replay(res.Recording, nil)
	b.green(v)
	if played != out {
		t.Errorf("after the disk has changed the replay printed %q, not %q", played, out)
	}
}

// TestMountsBelowHomeUnprivileged does the same as a user who is not root, whose mounts are locked.
func TestMountsBelowHomeUnprivileged(t *testing.T) {
	t.Parallel()
	runAsNobody(t, "^TestMountsBelowHome$", 1, func(dir string) []string {
		mounts := filepath.Join(dir, "mounts")
		layMounts(t, mounts, nobody)
		return []string{homeOfMountsVar + "=" + mounts}
	})
}
