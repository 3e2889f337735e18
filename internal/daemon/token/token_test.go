package token

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	p, q := New(), New()
	seen := map[string]bool{}
	for _, s := range []string{p.Agent, p.Host, q.Agent, q.Host} {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(b) != Size || len(s) != 43 || seen[s] {
			t.Errorf("%q: %d bytes, %v", s, len(b), err)
		}
		seen[s] = true
	}
}

func TestEqual(t *testing.T) {
	p := New()
	for said, want := range map[string]bool{
		p.Agent: true, p.Host: false, "": false, p.Agent[:42]: false, p.Agent + "=": false, " " + p.Agent: false,
		strings.ToUpper(p.Agent): false, p.Agent + "\x00": false, strings.Repeat(p.Agent, 10_000): false,
	} {
		if got := Equal(p.Agent, said); got != want {
			t.Errorf("Equal(_, %.50q) = %v", said, got)
		}
	}
	if Equal("", "") {
		t.Error("no token equals no token")
	}
}

func TestFilesOfADaemon(t *testing.T) {
	base := t.TempDir()
	p := New()
	addrs := []string{"ws://127.0.0.1:9100", "unix:/run/daemon.sock"}
	k, err := Write(base, p, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range append(addrs, "127.0.0.1:9100", "localhost:9100", "ws://LOCALHOST:9100/", "http://[::ffff:127.0.0.1]:9100", "unix:/run/./daemon.sock", "unix:///run/daemon.sock") {
		for host, want := range map[bool]string{false: p.Agent, true: p.Host} {
			if got, err := Read(base, addr, host); err != nil || got != want {
				t.Errorf("%s, host %v: got %q, %v", addr, host, got, err)
			}
		}
	}
	for _, addr := range []string{"ws://127.0.0.1:9101", "unix:/run/other.sock", "ws://example.com:9100", "[::1]:9100"} {
		if _, err := Read(base, addr, false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	if runtime.GOOS != "windows" {
		modes(t, base)
	}
	k.Remove()
	if left, _ := filepath.Glob(filepath.Join(base, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// modes looks at every file and directory below base.
func modes(t *testing.T, base string) {
	t.Helper()
	files := 0
	_ = filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == base {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if files != 4 {
		t.Errorf("%d files", files)
	}
}

// TestAKilledDaemon leaves its files, which the next one replaces; a stop of the first, late, leaves the second's alone.
func TestAKilledDaemon(t *testing.T) {
	base := t.TempDir()
	first, err := Write(base, New(), "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	p := New()
	if _, err := Write(base, p, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	first.Remove()
	if got, err := Read(base, "127.0.0.1:1", false); err != nil || got != p.Agent {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWildcardsAreFoundOnThisMachine(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:9100", "[::]:9100", ":9100"} {
		base := t.TempDir()
		p := New()
		if _, err := Write(base, p, listen); err != nil {
			t.Fatal(err)
		}
		for _, addr := range []string{"ws://127.0.0.1:9100", "ws://localhost:9100", "ws://[::1]:9100"} {
			if got, err := Read(base, addr, false); err != nil || got != p.Agent {
				t.Errorf("%s on %s: got %q, %v", addr, listen, got, err)
			}
		}
		for _, addr := range []string{"ws://elsewhere.example:9100", "ws://10.0.0.1:9100"} {
			if got, err := Read(base, addr, false); err == nil {
				t.Errorf("%s would be told the token %q of this machine's daemon", addr, got)
			}
		}
	}
}

// TestForeignDirectories refuses to write or read a token where somebody else may have a hand in it.
func TestForeignDirectories(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	tests := map[string]func(t *testing.T, dir string){
		"a link": func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), dir); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"writable by others": func(t *testing.T, dir string) {
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
				t.Fatal(err)
			}
		},
		"of another user": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir, err := Dir(base, "127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			make(t, dir)
			if _, err := Write(base, New(), "127.0.0.1:1"); err == nil {
				t.Error("written")
			}
			_ = os.WriteFile(filepath.Join(dir, agentFile), []byte("planted"), 0o600)
			if got, err := Read(base, "127.0.0.1:1", false); err == nil {
				t.Errorf("read %q", got)
			}
		})
	}
}

// TestNamesStayInTheirDirectory whatever an address says.
func TestNamesStayInTheirDirectory(t *testing.T) {
	for _, addr := range []string{
		"../../etc:1", "ws://..%2f..:1", "ws://a/../b:1", "host:../../x", "unix:../../x", "unix:/../../../etc/passwd", "ws://[::1%25eth0]:1",
		"h\x00st:1", "ÄÖÜ:1", strings.Repeat("x", 1000) + ":1", "..:..",
	} {
		dir, err := Dir("/base", addr)
		if err == nil && (filepath.Dir(dir) != "/base" || !strings.HasPrefix(filepath.Base(dir), "daemon-")) {
			t.Errorf("%q is in %q", addr, dir)
		}
	}
	for _, addr := range []string{"", "nonsense", "unix:", "ws://%zz"} {
		if dir, err := Dir("/base", addr); err == nil {
			t.Errorf("%q is in %q", addr, dir)
		}
	}
}

func TestBase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	dir, err := Dir("", "127.0.0.1:9100")
	if err != nil || dir != filepath.FromSlash("/run/user/7/tapedeck/daemon-127.0.0.1-9100") {
		t.Errorf("%s, %v", dir, err)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("ws://localhost:1")
	f.Add("unix:/a/b")
	f.Fuzz(func(t *testing.T, addr string) {
		dirs, err := candidates("/base", addr)
		for _, dir := range dirs {
			if err == nil && filepath.Dir(dir) != "/base" {
				t.Fatalf("%q is in %q", addr, dir)
			}
		}
	})
}
