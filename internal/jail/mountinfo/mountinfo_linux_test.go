package mountinfo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMountPoints(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mountinfo")
	list := "36 35 98:0 / /mnt/a\\040b rw - ext4 /dev/x rw\n37 35 98:0 / / rw - ext4 /dev/x rw\nnonsense\n"
	if err := os.WriteFile(path, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Points(path)
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
		got, err := Points(path)
		if s := strings.Join(got, " "); err != nil || s != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, s, err, tt.want)
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
		if got := Within(tt.path, tt.dir); got != tt.want {
			t.Errorf("within(%s, %s) = %v", tt.path, tt.dir, got)
		}
	}
}
