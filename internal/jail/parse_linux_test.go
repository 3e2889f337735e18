package jail

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRefusalOf(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr
	for _, tt := range []struct {
		name, packet string
		want         Refusal
		ok           bool
	}{
		{"IPv4 reset", "45000028000040004006000009090909 09090909 0016d1e2 00000000 00000001 5014000000000000",
			Refusal{Proto: "tcp", Addr: addr("9.9.9.9"), Port: 22}, true},
		{"IPv4 port unreachable", "45c0003900000000400100000808080808080808 0303000000000000" +
			"4500001d0000400040110000080808080808080a c35001bb0009000078", Refusal{Proto: "udp", Addr: addr("8.8.8.10"), Port: 443}, true},
		{"answer of the DNS to nobody", "45c0003900000000400100007f0000017f000001 0303000000000000" +
			"4500001d00004000401100007f0000017f000001 0035c3500009000078", Refusal{}, false},
		{"IPv4 multicast", "4500001d00004000011100007f000001e00000fb 14e914e9000900006d", Refusal{Proto: "udp", Addr: addr("224.0.0.251"), Port: 5353}, true},
		{"options cut off", "4f000028000040004006000009090909 09090909", Refusal{}, false},
		{"no header", "45", Refusal{}, false},
		{"nothing", "", Refusal{}, false},
	} {
		got, ok := refusalOf(unhex(t, tt.packet))
		if ok != tt.ok || !cmp.Equal(got, tt.want, cmpopts.IgnoreFields(Refusal{}, "Reason"), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
			t.Errorf("%s: %+v %v, want %+v %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(slices.DeleteFunc([]byte(s), func(c byte) bool { return c == ' ' })))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzRefusalOf(f *testing.F) {
	f.Add(unhex(f, "45c0003900000000400100000808080808080808030300000000000045000000"))
	f.Add(make([]byte, 60))
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, ok := refusalOf(p); ok && !r.Addr.IsValid() {
			t.Errorf("refusal without address: %+v", r)
		}
	})
}

func TestInLibrary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rights, file string
		want         bool
	}{
		{"r-xp", "/usr/lib/x86_64-linux-gnu/libc.so.6", true},
		{"r-xp", "/lib/x86_64-linux-gnu/libc-2.31.so", true}, // before glibc 2.34
		{"r-xp", "/lib/x86_64-linux-gnu/libc-2.31.so (deleted)", true},
		{"r--p", "/usr/lib/x86_64-linux-gnu/libc.so.6", false},
		{"r-xp", "/usr/lib/x86_64-linux-gnu/libcrypt.so.1", false},
		{"r-xp", "/usr/lib/libc-client.so.2007", false},
		{"r-xp", "", false},
	} {
		maps := "1000-2000 r-xp 00000000 00:01 7 /bin/x\n2000-3000 " + tt.rights + " 00001000 00:01 8 " + tt.file + "\n"
		for addr, want := range map[uint64]bool{0x1fff: false, 0x2000: tt.want, 0x2fff: tt.want, 0x3000: false} {
			if got := inLibrary(maps, addr); got != want {
				t.Errorf("%s %q: %#x is in the library: %v", tt.rights, tt.file, addr, got)
			}
		}
	}
}

func TestMountPoints(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mountinfo")
	mustWrite(t, path, "36 35 98:0 / /mnt/a\\040b rw - ext4 /dev/x rw\n37 35 98:0 / / rw - ext4 /dev/x rw\nnonsense\n")
	got, err := mountPoints(path)
	if err != nil || !slices.Equal(got, []string{"/", "/mnt/a b"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHiddenMounts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mountinfo")
	for _, tt := range []struct{ name, mounts, want string }{
		{"all seen", "1 0 /|2 1 /tmp|3 2 /tmp/a|4 3 /tmp/a/b|5 1 /tmpfile", "/ /tmp /tmp/a /tmp/a/b /tmpfile"},
		{"below a mount beside them", "1 0 /|2 1 /tmp/s/ram|3 1 /tmp|4 2 /tmp/s/ram/x", "/ /tmp"},
		{"below one on their own", "1 0 /|2 1 /tmp|3 2 /tmp/a|4 2 /tmp|5 4 /tmp/b", "/ /tmp /tmp/b"},
		{"one upon another", "1 0 /|2 1 /tmp/a|3 2 /tmp/a|4 3 /tmp/a/b", "/ /tmp/a /tmp/a/b"},
		{"mounted on the root", "1 0 /|2 1 /tmp|3 1 /|4 3 /srv", "/ /tmp"},
		{"a root that is no mount", "7 3 /tmp|8 3 /tmp/hidden|9 3 /srv", "/srv /tmp"},
		{"its own parent", "1 1 /|2 1 /tmp", "/ /tmp"},
		{"a circle", "2 3 /a/b|3 2 /a/b", "/a/b"},
	} {
		var list strings.Builder
		for m := range strings.SplitSeq(tt.mounts, "|") {
			f := strings.Fields(m)
			fmt.Fprintf(&list, "%s %s 0:1 / %s rw - tmpfs none rw\n", f[0], f[1], f[2])
		}
		if err := os.WriteFile(path, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := mountPoints(path)
		if s := strings.Join(got, " "); err != nil || s != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, s, err, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	for name, to := range map[string]string{"link": "real", "dangling": "gone/file", "far": "/run/none/x", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, dir+"/real/f", "")
	for in, want := range map[string]string{
		"/": "/", dir + "/real/f": dir + "/real/f", dir + "/link/f": dir + "/real/f", dir + "/link/none/x": dir + "/real/none/x",
		dir + "/dangling": dir + "/gone/file", dir + "/far": "/run/none/x", dir + "/loop": dir + "/loop", dir + "/none/../real": dir + "/real",
	} {
		if got := resolve(in); got != want {
			t.Errorf("resolve(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a", "/", true}, {"/a", "/a/b", false},
	} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("within(%s, %s) = %v", tt.path, tt.dir, got)
		}
	}
}
