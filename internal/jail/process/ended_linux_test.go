package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReapedStatus: the kernel itself tells how a process ended that its parent has waited for.
func TestReapedStatus(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Exit{"exit 7": {Code: 7}, "kill -15 $$": {Signal: syscall.SIGTERM}} {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		cmd.Wait()
		status, ok := reapedStatus(fd)
		if !ok && !knowsReaped() {
			t.Skip("Linux 6.15 and newer know it")
		}
		if !ok || ExitOf(status) != want {
			t.Errorf("%s: %v %v", script, ExitOf(status), ok)
		}
	}
}

// TestSettle: who asks what has ended hears of all that its parent has waited for, though others hear of it at the same time.
func TestSettle(t *testing.T) {
	t.Parallel()
	table, err := NewTable(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for range 50 {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var told atomic.Bool
		table.Lock()
		p, err := table.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		table.OnEnd(p, func(Ended) { told.Store(true) })
		table.Unlock()
		cmd.Wait()
		if table.Settle(); !told.Load() {
			t.Fatal("nobody was told of the end")
		}
	}
}

func TestStatusIn(t *testing.T) {
	t.Parallel()
	line := func(name, state, code string) string {
		return "12 (" + name + ") " + state + strings.Repeat(" 0", 48) + " " + code + "\n"
	}
	for text, want := range map[string]Ended{
		line("cat", "Z", "256"):        {Exit: Exit{Code: 1}, Known: true},
		line("a) Z 1 (b) 9", "Z", "9"): {Exit: Exit{Signal: syscall.SIGKILL}, Known: true},
		line("cat", "S", "0"):          {},
		"12 (cat) Z 1":                 {},
		"":                             {},
	} {
		status, ok := statusIn([]byte(text))
		if ok != want.Known || ok && ExitOf(status) != want.Exit {
			t.Errorf("%q: %v %v", text, ExitOf(status), ok)
		}
	}
}

// knowsReaped reports whether this is Linux 6.15 or newer.
func knowsReaped() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return err == nil && (a > 6 || a == 6 && b >= 15)
}
