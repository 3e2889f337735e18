package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// TestSubmountsOddly runs what TestSplitOddly does for root, who takes mounts away.
func TestSubmountsOddly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || os.Getenv(coveredVar) != "" {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	coverOddly(t, dir+"/odd", 0)
	changeOddly(t, dir)
}

// TestSplitOddly: mounts below an overlay can be changed as far as they could be without one, and the host's stay as they are.
func TestSplitOddly(t *testing.T) {
	t.Parallel()
	changeOddly(t, coveredTree(t))
}

func changeOddly(t *testing.T, dir string) {
	odd := dir + "/odd"
	list := []string{"fixed/s", "noexec/s", "noexec/new", "foreign/s", "foreign/new", "foreign/in/s", "foreign/in/deep/new",
		"layers/s", "layers/stack/s", "layers/full/s"}
	c := shellConfig(t, "for p in "+strings.Join(list, " ")+"; do (echo new >>$p) 2>/dev/null && echo wrote $p; done; cat layers/stack/s\n"+
		"printf '#!/bin/sh\\n' >noexec/run; chmod 755 noexec/run; noexec/run 2>/dev/null || echo not executed")
	c.Dir, c.Overlays = odd, []mount.Overlay{overlay(t, dir)}
	state := func() string {
		var out strings.Builder
		for _, p := range list {
			info, err := os.Lstat(filepath.Join(odd, p))
			if fmt.Fprintln(&out, p, err); err == nil {
				fmt.Fprintln(&out, info.Mode(), info.Size(), info.ModTime())
			}
		}
		return out.String()
	}
	before := state()
	var notCovered []string
	r := run(t, c, func(j *Jail) { notCovered = j.NotCovered() })
	foreign := ""
	if os.Geteuid() == 0 {
		foreign = "wrote foreign/new\n"
	}
	r.want(t, "wrote noexec/s\nwrote noexec/new\nwrote foreign/s\n"+foreign+"wrote foreign/in/s\nwrote foreign/in/deep/new\n"+
		"wrote layers/s\nwrote layers/stack/s\nlayers/stack\nnew\nnot executed\n")
	notCovered = slices.DeleteFunc(notCovered, func(s string) bool { return !strings.Contains(s, odd) })
	want := "changes of " + odd + "/layers/full: read-only inside, as it cannot be a layer (invalid argument), nor be copied (it is too large)"
	if !slices.Equal(notCovered, []string{want}) {
		t.Errorf("not covered: %q, want %q", notCovered, want)
	}
	if after := state(); after != before {
		t.Errorf("the host's tree changed from\n%s\nto\n%s", before, after)
	}
}

// TestDeadSubmount: a file system whose server is gone stays what it is, and is in nobody's way.
func TestDeadSubmount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	mustWrite(t, dir+"/dead/f", "f")
	mustWrite(t, dir+"/f", "f")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no FUSE here:", err)
	}
	err = unix.Mount("dead", dir+"/dead", "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd()))
	server.Close()
	if err != nil {
		t.Skip("cannot mount here:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir+"/dead", unix.MNT_DETACH) })
	c := shellConfig(t, "cat dead/f || echo dead; echo new >f; cat f")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "dead\nnew\n")
}

// TestSubmountsInLayers: what upper layers have at the place of a mount lies upon it, and hides it.
func TestSubmountsInLayers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || os.Getenv(coveredVar) != "" {
		t.Skip("only root can mount on the host")
	}
	dir, delta := testDir(t), testDir(t)
	layMounts(t, dir, delta)
	showLayers(t, dir, delta)
}

func layMounts(t *testing.T, dir, delta string) {
	t.Helper()
	for _, p := range []string{"changed", "gone", "replaced", "opaque"} {
		if err := os.Mkdir(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
		mountOn(t, "tmpfs", filepath.Join(dir, p), "tmpfs", 0)
		mustWrite(t, filepath.Join(dir, p, "a"), "host\n")
		mustWrite(t, filepath.Join(dir, p, "b"), "host\n")
	}
	mustWrite(t, delta+"/changed/a", "delta\n")
	mustWrite(t, delta+"/replaced", "delta\n")
	mustWrite(t, delta+"/opaque/new", "delta\n")
	for _, p := range []string{"/changed/b", "/gone"} {
		if err := mount.MakeWhiteout(delta + p); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeOpaque(delta + "/opaque"); err != nil {
		t.Fatal(err)
	}
}

func showLayers(t *testing.T, dir, delta string) {
	t.Helper()
	c := shellConfig(t, "echo new >>changed/a; "+listing)
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir, delta, dir)}
	run(t, c, nil).want(t, "./changed/a delta new\n./opaque/new delta\n./replaced delta\n")
	if got := mustRead(t, dir+"/changed/a"); got != "host\n" {
		t.Errorf("what is mounted holds %q", got)
	}
}

// TestOverlaysInSubmounts: another overlay may lie in a mount, or be one.
func TestOverlaysInSubmounts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || os.Getenv(coveredVar) != "" {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	for _, p := range []string{"disk", "tree", "tree/in"} {
		if err := os.Mkdir(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
		mountOn(t, "tmpfs", filepath.Join(dir, p), "tmpfs", 0)
	}
	files := []string{"disk/tree/f", "disk/f", "tree/f", "tree/in/f"}
	for _, f := range files {
		mustWrite(t, filepath.Join(dir, f), f)
	}
	c := shellConfig(t, "for f in "+strings.Join(files, " ")+"; do cat $f; echo; echo new >$f; cat $f; done")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir), overlay(t, dir+"/disk/tree"), overlay(t, dir+"/tree")}
	run(t, c, nil).want(t, strings.Join(files, "\nnew\n")+"\nnew\n")
	for _, f := range files {
		if got := mustRead(t, filepath.Join(dir, f)); got != f {
			t.Errorf("%s holds %q", f, got)
		}
	}
}

// TestSplitInside: the same where the mounts are locked.
func TestSplitInside(t *testing.T) {
	t.Parallel()
	dir := coveredTree(t)
	c := shellConfig(t, "for f in mnt/s odd/foreign/in/s odd/noexec/s; do cat $f; echo new >$f; cat $f; done")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir), overlay(t, dir+"/mnt"), overlay(t, dir+"/odd/foreign/in"), overlay(t, dir+"/odd")}
	run(t, c, nil).want(t, "mounted\nnew\nforeign/in\nnew\nnoexec\nnew\n")
	if got := mustRead(t, dir+"/mnt/s"); got != "mounted\n" {
		t.Errorf("what is mounted holds %q", got)
	}
}
