package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// coveredVar names, for a user who cannot mount, a tree that coverTree made.
const coveredVar = "JAIL_TEST_COVERED"

// coverTree makes a tree of user's with file systems mounted at a/b/mnt and mnt, and a file mounted at a/one; at cover,
// where it hides another at cover/inner; and at closed/in/mnt, where nobody but root can go.
func coverTree(t *testing.T, dir string, user int) {
	t.Helper()
	for _, f := range []string{"f", "gone", "hidden", "plain/x", "plain/y", "opaque/host", "a/g", "a/one", "a/b/h", "a/c/i"} {
		mustWrite(t, filepath.Join(dir, f), f+"\n")
	}
	points := []string{dir + "/mnt", dir + "/a/b/mnt", dir + "/a/one"}
	for _, p := range points[:2] {
		if err := os.Mkdir(p, 0o755); err != nil {
			t.Fatal(err)
		}
		mountOn(t, "tmpfs", p, "tmpfs", 0)
		mustWrite(t, p+"/s", "mounted\n")
	}
	mountOn(t, dir+"/mnt/s", points[2], "", unix.MS_BIND)
	hideAndClose(t, dir)
	coverOddly(t, dir+"/odd", user)
	if err := os.Symlink("plain/x", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/secret", nil, 0); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, dir+"/big", "big\n")
	if err := os.Truncate(dir+"/big", mount.MaxCopiedFile+1); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		switch {
		case err != nil || path == dir+"/secret":
			return err
		case path == dir+"/closed" || path == dir+"/odd":
			return filepath.SkipDir
		}
		return os.Lchown(path, user, user)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hideAndClose(t *testing.T, dir string) {
	t.Helper()
	for _, p := range []string{dir + "/cover/inner", dir + "/cover", dir + "/closed/in/mnt"} {
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		mountOn(t, "tmpfs", p, "tmpfs", 0)
	}
	if err := os.Chmod(dir+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
}

// coverOddly mounts in dir what is read-only, without execution, another user's, in another mount, and what cannot be a layer.
func coverOddly(t *testing.T, dir string, user int) {
	t.Helper()
	for _, m := range []struct {
		name, kind string
		flags      uintptr
		options    string
	}{
		{"fixed", "tmpfs", unix.MS_RDONLY, ""},
		{"noexec", "tmpfs", unix.MS_NOEXEC, "mode=0777"},
		{"foreign", "tmpfs", 0, "mode=0755"},
		{"foreign/in", "tmpfs", 0, "mode=0777"},
		{"foreign/in/deep", "tmpfs", 0, "mode=0777"},
		{"layers", "tmpfs", 0, "mode=0777"},
		{"layers/stack", "overlay", 0, "2"},
		{"layers/full", "overlay", 0, "3"},
	} {
		at := filepath.Join(dir, m.name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if m.kind == "overlay" {
			m.options = stacked(t, dir+"/layers/of", m.options)
		}
		if err := unix.Mount(m.kind, at, m.kind, m.flags, m.options); err != nil {
			t.Skipf("cannot mount %s here: %v", m.kind, err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		if m.name == "fixed" {
			continue
		}
		mustWrite(t, at+"/s", m.name+"\n")
		if err := os.Chown(at+"/s", user, user); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(dir+"/layers/full/s", mount.MaxCopied); err != nil {
		t.Fatal(err)
	}
}

// stacked makes the layers of an overlay upon another, below which a third would be one too many, and returns its options.
func stacked(t *testing.T, dir, name string) string {
	t.Helper()
	dir = filepath.Join(dir, name)
	for _, d := range []string{"lower", "upper", "work", "upper2", "work2", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", dir+"/merged", "overlay", 0, options); err != nil {
		t.Skip("cannot mount overlays here:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir+"/merged", unix.MNT_DETACH) })
	return fmt.Sprintf("lowerdir=%[1]s/merged,upperdir=%[1]s/upper2,workdir=%[1]s/work2", dir)
}

func mountOn(t *testing.T, from, at, kind string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(from, at, kind, flags, ""); err != nil {
		t.Skip("cannot mount here:", err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
}

// coveredTree returns a tree of coverTree whose mounts are locked for the jail. The tests share it, and so run one after another.
func coveredTree(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(coveredVar)
	if dir == "" {
		t.Skip("needs mounts made by somebody else: runs in TestUnprivileged")
	}
	return dir
}

// TestSplitNestedRoot runs the tests of splits as the root of a user namespace, in which the host's mounts are locked.
func TestSplitNestedRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || os.Getenv(coveredVar) != "" {
		t.Skip("only root can mount on the host")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("unshare is not installed")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(testDir(t), "covered")
	coverTree(t, dir, 0)
	cmd := exec.Command(unshare, "-rm", exe, "-test.timeout=60s", "-test.run=^TestSplit")
	cmd.Env = append(os.Environ(), coveredVar+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// listing shows a tree as the program sees it: names, then what the small files hold.
const listing = "find . -path ./odd -prune -o ! -name big ! -name secret ! -type d -print | LC_ALL=C sort | while read p; do echo $p $(cat $p); done"

func TestSplitOverlay(t *testing.T) {
	dir := coveredTree(t)
	script := strings.Join([]string{listing,
		"echo new >f; echo new >plain/x; echo new >a/g; echo new >a/b/h; echo new >a/c/i",
		"rm gone plain/y; mkdir fresh a/b/fresh; echo n >fresh/n; echo n >a/b/fresh/n; mv a/g a/b/g; ln hidden a/linked",
		"for p in mnt/s a/b/mnt/s a/one big; do (echo new >$p) 2>/dev/null && echo wrote $p; done",
		"echo; " + listing}, "\n")
	before := hostState(t, dir)
	c := shellConfig(t, script)
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	var notCovered []string
	r := run(t, c, func(j *Jail) { notCovered = j.NotCovered() })
	r.want(t, `./a/b/h a/b/h
./a/b/mnt/s mounted
./a/c/i a/c/i
./a/g a/g
./a/one mounted
./f f
./gone gone
./hidden hidden
./link plain/x
./mnt/s mounted
./opaque/host opaque/host
./plain/x plain/x
./plain/y plain/y
wrote mnt/s
wrote a/b/mnt/s
wrote a/one

./a/b/fresh/n n
./a/b/g new
./a/b/h new
./a/b/mnt/s new
./a/c/i new
./a/linked hidden
./a/one new
./f new
./fresh/n n
./hidden hidden
./link new
./mnt/s new
./opaque/host opaque/host
./plain/x new
`)
	readOnly := []string{"/big:", "/secret:"}
	if os.Geteuid() == 0 {
		readOnly = readOnly[:1] // the other can be read
	}
	for _, name := range readOnly {
		if !slices.ContainsFunc(notCovered, func(s string) bool { return strings.Contains(s, dir+name) }) {
			t.Errorf("%s is read-only and not in %q", name, notCovered)
		}
	}
	if after := hostState(t, dir); after != before {
		t.Errorf("the host's tree changed from\n%s\nto\n%s", before, after)
	}
}

func hostState(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) || path == dir+"/odd" {
			return filepath.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		fmt.Fprintln(&out, path, info.Mode(), info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSplitLayers(t *testing.T) {
	dir, delta := coveredTree(t), testDir(t)
	for _, f := range []string{"f", "a/g", "a/b/added", "opaque/delta", "plain/x", "new/n"} {
		mustWrite(t, filepath.Join(delta, f), "delta\n")
	}
	for _, f := range []string{"gone", "hidden", "a/c", "plain/y"} {
		if err := mount.MakeWhiteout(filepath.Join(delta, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeOpaque(delta + "/opaque"); err != nil {
		t.Fatal(err)
	}
	c := shellConfig(t, listing+"; mkdir gone; echo x >gone/x; cat gone/x")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir, delta, dir)}
	run(t, c, nil).want(t, `./a/b/added delta
./a/b/h a/b/h
./a/b/mnt/s mounted
./a/g delta
./a/one mounted
./f delta
./link delta
./mnt/s mounted
./new/n delta
./opaque/delta delta
./plain/x delta
x
`)
}

// TestSplitClosed: what the caller cannot look into is shown as it is, and so are the mounts in it.
func TestSplitClosed(t *testing.T) {
	dir := coveredTree(t)
	if os.Geteuid() == 0 {
		t.Skip("root may look into everything")
	}
	c := shellConfig(t, "stat -c '%a %F' closed; ls closed; rmdir closed; chmod 755 closed; touch cover/f; ls cover")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "700 directory\nf\n")
}

func TestSplitElsewhere(t *testing.T) {
	lower, dir := coveredTree(t), testDir(t)
	c := shellConfig(t, "cat f mnt/s a/b/mnt/s a/one; (echo x >mnt/s) 2>/dev/null || echo refused")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir, lower)}
	run(t, c, nil).want(t, "f\nmounted\nmounted\nmounted\nrefused\n")
}

func TestSplitNested(t *testing.T) {
	dir := coveredTree(t)
	c := shellConfig(t, "cat b/h b/mnt/s ../f; echo 1 >g; echo 2 >../f; cat g ../f")
	c.Dir, c.Overlays = dir+"/a", []mount.Overlay{overlay(t, dir), overlay(t, dir+"/a")}
	run(t, c, nil).want(t, "a/b/h\nmounted\nf\n1\n2\n")
}

func TestSplitOpenRoot(t *testing.T) {
	dir := coveredTree(t)
	c := shellConfig(t, "echo new >plain/x; rm plain/y gone")
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(t, dir)}
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
	root, err := j.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{
		"f": "f\n", "plain/x": "new\n", "a/c/i": "a/c/i\n", "a/b/mnt/s": "mounted\n", "a/one": "mounted\n",
	} {
		if got := mustRead(t, fmt.Sprintf("/proc/self/fd/%d/%s", root.Fd(), name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"gone", "plain/y"} {
		if _, err := os.Lstat(fmt.Sprintf("/proc/self/fd/%d/%s", root.Fd(), name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func TestSplitSocket(t *testing.T) {
	dir := coveredTree(t)
	path := dir + "/mnt/sock"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := helperConfig(t, "dial", "unix", path)
	c.Overlays = []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, path+" failed\n")
	other := testDir(t)
	c = helperConfig(t, "dial", "unix", other+"/mnt/sock")
	c.Overlays = []mount.Overlay{overlay(t, other, dir)}
	run(t, c, nil).want(t, other+"/mnt/sock failed\n")
}

func TestSplitMasks(t *testing.T) {
	dir := coveredTree(t)
	o := overlay(t, dir)
	c := shellConfig(t, "cat f a/g; ls a/c mnt; cat "+o.Upper+"/f "+o.Upper+"/a/g; echo end")
	c.Dir, c.Overlays, c.Masks = dir, []mount.Overlay{o}, []string{dir + "/f", dir + "/a/g", dir + "/a/c", dir + "/mnt"}
	run(t, c, nil).want(t, "a/c:\n\nmnt:\nend\n")
}

func TestSplitRename(t *testing.T) {
	dir := coveredTree(t)
	c := helperConfig(t, "rename", dir+"/plain/x", dir+"/x")
	c.Overlays = []mount.Overlay{overlay(t, dir)}
	run(t, c, nil).want(t, "EXDEV\n")
}
