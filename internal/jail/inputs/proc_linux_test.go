package inputs

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
)

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

func TestWithoutOurs(t *testing.T) {
	t.Parallel()
	const (
		root  = "36 35 98:0 / / ro - ext4 /dev/x rw\n"
		layer = "37 36 0:52 / /home/a\\040b rw - overlay overlay rw\n"
		bind  = "38 36 98:0 /tmp /tmp rw - ext4 /dev/x rw\n"
		host  = "39 36 98:1 / /work rw - ext4 /dev/y rw\n"
		other = "40 36 98:0 /srv /srv rw - ext4 /dev/x rw\n"
	)
	in := &Answerer{plan: &mount.Plan{Targets: []mount.Target{{Path: "/home/a b", Overlay: new(mount.Overlay)}, {Path: "/tmp"}, {Path: "/work"}}}}
	if got := string(in.withoutOurs([]byte(root + layer + bind + host + other))); got != root+host+other {
		t.Errorf("left %q", got)
	}
}

func TestTellsNow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"uptime": true, "net/dev": true, "net/tcp": false, "net/../../1/environ": false, "self/stat": true, "self/task/7/status": true, "7/stat": true, "self/mountinfo": true, "thread-self/io": true,
		"7/mountinfo": false, "self/environ": false, "self/fd/3": false, "7/environ": false, "self/maps": false, "self/exe": false, "x/stat": false, "kcore": false,
	} {
		if tellsNow(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
