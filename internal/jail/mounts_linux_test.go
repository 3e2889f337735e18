package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// makeOpaque makes a directory in a layer hide everything that lower layers have below it.
func makeOpaque(dir string) error { return unix.Setxattr(dir, "user.overlay.opaque", []byte("y"), 0) }

// overlay makes an overlay of target with fresh layers. Lowers are those given, target itself when there are none.
func overlay(t testing.TB, target string, lowers ...string) mount.Overlay {
	t.Helper()
	layers, err := os.MkdirTemp("/var/tmp", "tapedeck-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		filepath.WalkDir(layers, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				os.Chmod(path, 0o700) // the kernel leaves some that cannot be entered
			}
			return nil
		})
		os.RemoveAll(layers)
	})
	if len(lowers) == 0 {
		lowers = []string{target}
	}
	o := mount.Overlay{Target: target, Lowers: lowers, Upper: layers + "/upper", Work: layers + "/work"}
	for _, d := range []string{o.Upper, o.Work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func TestOverlayKeepsHost(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/f", "host")
	mustWrite(t, dir+"/gone", "host")
	o := overlay(t, dir)
	c := shellConfig(t, "cat f; echo new >f; rm gone; mkdir sub; echo x >sub/x; cat f; ls")
	c.Dir, c.Overlays = dir, []mount.Overlay{o}
	run(t, c, nil).want(t, "hostnew\nf\nsub\n")
	if mustRead(t, dir+"/f") != "host" || mustRead(t, dir+"/gone") != "host" {
		t.Error("the host's tree changed")
	}
	if mustRead(t, o.Upper+"/f") != "new\n" || mustRead(t, o.Upper+"/sub/x") != "x\n" {
		t.Error("the upper layer lacks what was written")
	}
}

// TestOverlayVolatile: nothing of an upper layer is worth waiting for the disk.
func TestOverlayVolatile(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	c := shellConfig(t, "grep -c '^overlay "+dir+" .*volatile' /proc/mounts")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "1\n")
}

// TestOverlayWithout: an option that the kernel does not know is left out.
func TestOverlayWithout(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	o := overlay(t, dir)
	lower, err := mount.OpenPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lower.Close()
	made, err := mount.NewOverlayWith("no such option", 0, []mount.Tree{lower}, o.Upper, o.Work)
	if err != nil {
		t.Fatal(err)
	}
	made.Close()
}

func TestOverlayLayers(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	for _, f := range []string{"host/a", "host/b", "host/d/x", "delta/b", "delta/d/y"} {
		mustWrite(t, filepath.Join(dir, f), f+"\n")
	}
	if err := mount.MakeWhiteout(dir + "/delta/a"); err != nil {
		t.Fatal(err)
	}
	if err := makeOpaque(dir + "/delta/d"); err != nil {
		t.Fatal(err)
	}
	c := shellConfig(t, "find . -type f | sort; cat b")
	c.Dir, c.Overlays = dir+"/host", []mount.Overlay{overlay(t, dir+"/host", dir+"/delta", dir+"/host")}
	run(t, c, nil).want(t, "./b\n./d/y\ndelta/b\n")
}

func TestOverlayNested(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/home/rc", "rc")
	mustWrite(t, dir+"/home/tree/f", "f")
	mustWrite(t, dir+"/home/tree/tmp/t", "t")
	c := shellConfig(t, "echo 1 >rc; echo 2 >tree/f; echo 3 >tree/tmp/t; cat rc tree/f tree/tmp/t")
	c.Dir = dir + "/home"
	home, tree, tmp := overlay(t, dir+"/home"), overlay(t, dir+"/home/tree"), overlay(t, dir+"/home/tree/tmp")
	c.Overlays = []mount.Overlay{tmp, home, tree}
	run(t, c, nil).want(t, "1\n2\n3\n")
	for path, want := range map[string]string{
		dir + "/home/rc": "rc", dir + "/home/tree/f": "f", dir + "/home/tree/tmp/t": "t",
		home.Upper + "/rc": "1\n", tree.Upper + "/f": "2\n", tmp.Upper + "/t": "3\n",
	} {
		if got := mustRead(t, path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	if _, err := os.Stat(home.Upper + "/tree"); err == nil {
		t.Error("the inner tree's writes went to the outer layer")
	}
}

func TestOverlayAbsentTarget(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/lower/f", "f")
	mustWrite(t, dir+"/there/sibling", "sibling")
	for _, tt := range []struct {
		name, target, see string
		outer             bool
	}{
		{"in a read-only directory", dir + "/there/a/b", dir + "/there/sibling", false},
		{"in an overlay", dir + "/there/a/b", dir + "/there/sibling", true},
		{"in the root", "/tapedeck-absent/a", dir + "/there/sibling", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := shellConfig(t, "cat f; echo new >f; cat "+tt.see+" f; ls -d /proc/self /dev/null /run/tapedeck; touch ../x 2>/dev/null && echo changed")
			c.Dir, c.Overlays = tt.target, []mount.Overlay{overlay(t, tt.target, dir+"/lower")}
			want := "fsiblingnew\n/dev/null\n/proc/self\n/run/tapedeck\n"
			if tt.outer {
				c.Overlays = append(c.Overlays, overlay(t, dir+"/there"))
				want += "changed\n"
			}
			r := run(t, c, nil)
			if r.stdout != want {
				t.Errorf("%q, want %q; stderr %s", r.stdout, want, r.stderr)
			}
			if _, err := os.Stat(tt.target); err == nil {
				t.Error("the target was made on the host")
			}
		})
	}
}

func TestSymlinkedTarget(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/real/f", "f")
	if err := os.Symlink("real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	c := shellConfig(t, "echo new >f; cat f; pwd")
	c.Dir, c.Overlays = dir+"/link", []mount.Overlay{overlay(t, dir+"/link", dir+"/real")}
	run(t, c, nil).want(t, "new\n"+dir+"/real\n")
	if mustRead(t, dir+"/real/f") != "f" {
		t.Error("the host's tree changed")
	}
}

func TestMasksAndFiles(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/secret/key", "key")
	mustWrite(t, dir+"/file", "secret")
	mustWrite(t, dir+"/bundle", "host's")
	c := shellConfig(t, "cat file bundle /run/tapedeck/ca.pem; ls secret; ls /run; cat /etc/resolv.conf; echo x >secret/x || echo x >file || echo x >bundle || echo refused")
	c.Dir, c.Writable = dir, []string{dir}
	c.Masks = []string{dir + "/secret", dir + "/file", dir + "/absent"}
	mustWrite(t, dir+"/head", "theirs\n")
	head, err := os.Open(dir + "/head")
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	head.Read(make([]byte, 3)) // as an init whose start failed may have
	c.Files = []mount.File{{Path: "/run/tapedeck/ca.pem", Data: []byte("ours\n"), Over: []string{dir + "/bundle", dir + "/absent"}, Behind: int(head.Fd())}}
	run(t, c, nil).want(t, "theirs\nours\ntheirs\nours\ntapedeck\nnameserver 127.0.0.1\nrefused\n")
}

// TestMaskThatGitIgnores: a masked directory that keeps itself out of Git's sight still does, for git clean removes an empty one.
func TestMaskThatGitIgnores(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/kept/.gitignore", "*\n!key\n")
	mustWrite(t, dir+"/kept/key", "key")
	c := shellConfig(t, "ls -A kept; cat kept/.gitignore; echo x >kept/x || rm kept/.gitignore || echo refused")
	c.Dir, c.Writable, c.Masks = dir, []string{dir}, []string{dir + "/kept"}
	run(t, c, nil).want(t, ".gitignore\n*\nrefused\n")
}

func TestSocketsCovered(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	abstract := fmt.Sprintf("@tapedeck-test-abstract-%d", os.Getpid())
	for _, network := range []string{dir + "/path.sock", abstract} {
		l, err := net.Listen("unix", network)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	args := []string{"unix", dir + "/path.sock", "unix", abstract}
	for _, over := range []bool{false, true} {
		c := helperConfig(t, "dial", args...)
		if c.Writable = []string{dir}; over {
			c.Writable, c.Overlays = nil, []mount.Overlay{overlay(t, dir)}
		}
		run(t, c, nil).want(t, dir+"/path.sock failed\n"+abstract+" failed\n")
	}
}

func TestSubmounts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	mustWrite(t, dir+"/w/sub/hidden", "hidden")
	if err := unix.Mount("none", dir+"/w/sub", "tmpfs", 0, ""); err != nil {
		t.Skip("cannot mount here:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir+"/w/sub", unix.MNT_DETACH) })
	mustWrite(t, dir+"/w/sub/f", "f")
	c := shellConfig(t, "cat sub/f; echo new >sub/f; cat sub/f")
	c.Dir, c.Writable = dir+"/w", []string{dir + "/w"}
	run(t, c, nil).want(t, "fnew\n")
	mustWrite(t, dir+"/w/sub/f", "f")
	c.Writable, c.Overlays = nil, []mount.Overlay{overlay(t, dir+"/w")}
	run(t, c, nil).want(t, "fnew\n")
	if got := mustRead(t, dir+"/w/sub/f"); got != "f" {
		t.Errorf("what is mounted holds %q", got)
	}
}

// TestHiddenSubmounts: mounts that others hide are not looked for, and do not stay in the way when those are taken away.
func TestHiddenSubmounts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	for _, p := range []string{"a/hidden", "a", "a"} {
		if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
		mountOn(t, "tmpfs", filepath.Join(dir, p), "tmpfs", 0)
	}
	mustWrite(t, dir+"/a/f", "f")
	mustWrite(t, dir+"/b/f", "f")
	c := shellConfig(t, "cat a/f; ls a; echo new >a/f && cat a/f")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "ff\nnew\n")
	c = helperConfig(t, "rename", dir+"/b/f", dir+"/f")
	c.Overlays = []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "<nil>\n") // one overlay, not a split one
}

func TestOpenRoot(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/w/f", "host")
	c := shellConfig(t, "echo inside >f")
	c.Dir, c.Overlays = dir+"/w", []mount.Overlay{overlay(t, dir+"/w")}
	j, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Wait(); err != nil {
		t.Fatal(err)
	}
	root, err := j.OpenRoot(dir + "/w")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := j.OpenRoot(dir + "/none"); err == nil {
		t.Error("a directory that does not exist was opened")
	}
	path := fmt.Sprintf("/proc/self/fd/%d/f", root.Fd())
	if got := mustRead(t, path); got != "inside\n" {
		t.Errorf("before Close: %q", got)
	}
	j.Close()
	if got := mustRead(t, path); got != "inside\n" {
		t.Errorf("after Close: %q", got)
	}
}

func TestWritableWithin(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/w/tree/f", "f")
	mustWrite(t, dir+"/w/g", "g")
	c := helperConfig(t, "rename", dir+"/w/g", dir+"/w/tree/g")
	c.Writable = []string{dir + "/w/tree", dir + "/w", dir + "/w"}
	run(t, c, nil).want(t, "<nil>\n") // one mount: no EXDEV
	if mustRead(t, dir+"/w/tree/g") != "g" {
		t.Error("not renamed")
	}
}

// TestProcReadOnly: what belongs to no process of the program's own cannot be written to, by root's name either.
func TestProcReadOnly(t *testing.T) {
	t.Parallel()
	run(t, shellConfig(t, `for f in /proc/1/oom_score_adj /proc/sys/kernel/core_pattern /proc/[a-z]*; do
	[ -f $f ] && [ ! -L $f ] && (: >>$f) 2>/dev/null && echo $f; done; echo 0 >/proc/self/oom_score_adj && echo own`), nil).want(t, "own\n")
}

// TestNoCgroupNamespaces: in one, root of a nested user namespace could mount the recorder's own control group.
func TestNoCgroupNamespaces(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/sys/user/max_cgroup_namespaces"); err != nil {
		t.Skip("no control groups here")
	}
	c := helperConfig(t, "unshare", strconv.Itoa(unix.CLONE_NEWCGROUP))
	run(t, c, nil).want(t, "ENOSPC\n")
	run(t, helperConfig(t, "unshare", strconv.Itoa(unix.CLONE_NEWNS)), nil).want(t, "<nil>\n")
}

// works wants a jail that is started by a plan, and a program in it that does what it should.
func works(t *testing.T, c *Config, plan *mount.Plan) {
	t.Helper()
	j, err := startPlanned(t.Context(), c, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	if x, err := j.Wait(); err != nil || x != (Exit{}) {
		t.Errorf("%+v %v", x, err)
	}
}

// TestCameAndWent: a start that failed is tried again, with layers as fresh as the first.
func TestCameAndWent(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/a/file", "content")
	mustWrite(t, dir+"/b/file", "content")
	c := shellConfig(t, "cat a/file b/file; echo new >a/file")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir+"/a"), overlay(t, dir+"/b")}
	plan, err := mount.NewPlan(c.wish())
	if err != nil {
		t.Fatal(err)
	}
	plan.Targets[1].Overlay.Upper += " was here" // looked for once the first overlay stands
	works(t, c, plan)
}

// TestMountedMeanwhile: what others mount below an overlay, or unmount, while a jail starts makes it plan anew.
func TestMountedMeanwhile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	mustWrite(t, filepath.Join(dir, "file"), "content")
	point := filepath.Join(dir, "point")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(change func()) {
		t.Helper()
		c := shellConfig(t, "cat file; echo new >file; ls point")
		c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
		plan, err := mount.NewPlan(c.wish())
		if err != nil {
			t.Fatal(err)
		}
		change()
		works(t, c, plan)
	}
	start(func() { mountOn(t, "tmpfs", point, "tmpfs", 0) })
	start(func() {
		if err := unix.Unmount(point, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMountedMeanwhileOverAFilledLayer: what a caller put into an upper layer is not taken away for a start anew.
func TestMountedMeanwhileOverAFilledLayer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	point := filepath.Join(dir, "point")
	c := shellConfig(t, "cat moved")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	inLayer := filepath.Join(c.Overlays[0].Upper, "moved")
	for _, err := range []error{os.Mkdir(point, 0o755), os.WriteFile(inLayer, nil, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	plan, err := mount.NewPlan(c.wish())
	if err != nil {
		t.Fatal(err)
	}
	mountOn(t, "tmpfs", point, "tmpfs", 0)
	if j, err := startPlanned(t.Context(), c, plan); err == nil {
		j.Close()
	}
	if _, err := os.Stat(inLayer); err != nil {
		t.Error(err)
	}
}

// TestUnmountedMeanwhileOverAFilledLayer: a mount of the host's that went with its place, as another's test's does, is in nobody's way.
func TestUnmountedMeanwhileOverAFilledLayer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount on the host")
	}
	dir := testDir(t)
	var points []string
	for _, name := range []string{"point", "kernels", "masked"} {
		points = append(points, filepath.Join(dir, name))
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mountOn(t, "tmpfs", points[0], "tmpfs", 0)
	mountOn(t, "proc", points[1], "proc", 0)
	mountOn(t, "tmpfs", points[2], "tmpfs", 0)
	c := shellConfig(t, "cat moved; ls")
	c.Dir, c.Overlays, c.Masks = dir, []mount.Overlay{overlay(t, dir)}, points[2:]
	mustWrite(t, filepath.Join(c.Overlays[0].Upper, "moved"), "was moved\n")
	plan, err := mount.NewPlan(c.wish())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if err := errors.Join(unix.Unmount(p, 0), os.Remove(p)); err != nil {
			t.Fatal(err)
		}
	}
	works(t, c, plan)
}
