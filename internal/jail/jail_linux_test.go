package jail

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestExit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 7", Exit{Code: 7}},
		{"kill -TERM $$", Exit{Signal: syscall.SIGTERM}},
		{"kill -KILL $$", Exit{Signal: syscall.SIGKILL}},
	} {
		if got := run(t, shellConfig(t, tt.script), nil).exit; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.script, got, tt.want)
		}
	}
}

func TestProgramNotFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   error
	}{
		{"absent", func(c *Config) { c.Path = "/nonexistent" }, syscall.ENOENT},
		{"directory", func(c *Config) { c.Path = "/usr" }, syscall.EACCES},
	} {
		c := shellConfig(t, "true")
		tt.change(c)
		j, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		err = j.Release()
		var e *ExecError
		if !errors.As(err, &e) || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want an ExecError of %v", tt.name, err, tt.want)
		}
		if x, err := j.Wait(); err != nil || x.Code != 127 {
			t.Errorf("%s: Wait %+v, %v", tt.name, x, err)
		}
		j.Close()
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	mustWrite(t, dir+"/ro/f", "old")
	mustWrite(t, dir+"/rw/f", "old")
	c := shellConfig(t, fmt.Sprintf("cd %s; echo new >rw/f; echo new >ro/f; echo x >/etc/x; echo x >/run/x; echo x >/dev/x; cat rw/f ro/f", dir))
	c.Writable = []string{dir + "/rw"}
	r := run(t, c, nil)
	if r.stdout != "new\nold" {
		t.Errorf("program saw %q", r.stdout)
	}
	if n := strings.Count(r.stderr, "Read-only file system"); n != 4 {
		t.Errorf("%d of 4 writes refused: %s", n, r.stderr)
	}
	if got := mustRead(t, dir+"/rw/f"); got != "new\n" {
		t.Errorf("host has %q", got)
	}
}
