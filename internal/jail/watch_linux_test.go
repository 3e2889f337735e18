package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A witness is a Watcher that keeps what it is told of, each as "op path path", and holds every path against the
// directory that came with it.
type witness struct {
	base string // taken off the paths
	hook func(*FileCall) (func() error, error)

	mu    sync.Mutex
	calls []string
	wrong []string
}

func (w *witness) Changing(c *FileCall) (func() error, error) {
	w.mu.Lock()
	text := c.Op.String()
	for _, p := range c.Paths {
		if p.Dir < 0 {
			text += " -"
			continue
		}
		text += " " + strings.TrimPrefix(p.Path, w.base+"/")
		if dir, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", p.Dir)); err != nil || filepath.Join(dir, p.Name) != p.Path {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: its directory is %q %v, its name %q", p.Path, dir, err, p.Name))
		}
	}
	w.calls = append(w.calls, text)
	w.mu.Unlock()
	if w.hook != nil {
		return w.hook(c)
	}
	return nil, nil
}

func (w *witness) want(t testing.TB, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.wrong {
		t.Error(s)
	}
	if !slices.Equal(w.calls, want) {
		t.Errorf("told of\n\t%s\nwant\n\t%s", strings.Join(w.calls, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// watchCalls runs calls in dir and returns what was told of them and printed by them.
func watchCalls(t *testing.T, dir string, calls ...string) (*witness, result) {
	t.Helper()
	c := callsConfig(t, dir, calls...)
	w := &witness{base: dir}
	c.Watch = w
	r := run(t, c, func(j *Jail) {
		if n := j.NotCovered(); len(n) > 0 {
			t.Logf("not covered: %q", n)
		}
	})
	return w, r
}

const cwd = unix.AT_FDCWD

func TestWatchCalls(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls []string
		says  string // what the calls print; "ok" each if empty
		want  []string
	}{
		{"openat for writing", []string{call(unix.SYS_OPENAT, cwd, "new", unix.O_CREAT|unix.O_WRONLY, 0o644)}, "", []string{"open new"}},
		{"openat for reading", []string{call(unix.SYS_OPENAT, cwd, "file", unix.O_RDONLY, 0), call(unix.SYS_OPENAT, cwd, ".", unix.O_DIRECTORY, 0)}, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := testDir(t)
			mustWrite(t, filepath.Join(dir, "file"), "content")
			w, r := watchCalls(t, dir, tt.calls...)
			says := tt.says
			if says == "" {
				says = strings.Repeat("ok\n", len(tt.calls))
			}
			r.want(t, says)
			w.want(t, tt.want...)
		})
	}
}
