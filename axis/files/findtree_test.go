package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindTree(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	home := filepath.Join(top, "home")
	model{
		"home/plain/sub": "/", "home/repo/.git/HEAD": "ref: x\n", "home/repo/a/b": "/", "home/repo/bare/.git": "/",
		"home/repo/wt/.git": "gitdir: elsewhere\n", "home/repo/wt/x": "/", "link": "->home/repo/a", "homelink": "->home",
	}.build(t, top)
	tests := []struct {
		dir, home, want string
		ok              bool
	}{
		{"home/plain/sub", home, "home/plain/sub", true},
		{"home/repo/a/b", home, "home/repo", true},
		{"home/repo/bare", home, "home/repo", true},
		{"home/repo/wt/x", home, "home/repo/wt", true},
		{"link/b", home, "home/repo", true},
		{"home", home, "home", false},
		{"home", filepath.Join(top, "homelink"), "home", false},
		{"", home, "", false},
		{"home", "", "home", true},
		{"home", filepath.Join(home, "plain", "sub"), "home", false},
	}
	for _, tt := range tests {
		root, ok, why := FindTree(filepath.Join(top, tt.dir), tt.home)
		if root != filepath.Join(top, tt.want) || ok != tt.ok || ok != (why == "") {
			t.Errorf("FindTree(%q, %q) = %q, %v, %q; want %q, %v", tt.dir, tt.home, root, ok, why, tt.want, tt.ok)
		}
	}
	if _, ok, why := FindTree(string(os.PathSeparator), home); ok || why == "" {
		t.Errorf("the root of the file system: %v, %q", ok, why)
	}
	if _, ok, _ := FindTree(filepath.Join(top, "absent"), home); ok {
		t.Error("a directory that does not exist is a work tree")
	}
}
