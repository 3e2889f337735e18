package inputs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// A call with the timeout that was made is that call only where all of it is the same.
func TestWaitAgain(t *testing.T) {
	t.Parallel()
	const (
		nr    = unix.SYS_MQ_TIMEDRECEIVE
		stack = "0x7ffc00001008"
		at    = 0x7ffc00000f40 // below that
	)
	for name, tt := range map[string]struct {
		at, ip  uint64
		nr      int32
		is      string
		syscall string
		want    bool
	}{
		"the same":             {at, 9, nr, "x", "243 0x1 0x2 0x3 0x4 0x5 0x6 " + stack + " 0x9\n", true},
		"woken by a signal":    {at, 9, nr, "x", "running\n", true},
		"called deeper":        {at, 9, nr, "x", "243 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc00000e00 0x9\n", false},
		"another address":      {at + 16, 9, nr, "x", "running\n", false},
		"another place":        {at, 8, nr, "x", "running\n", false},
		"another call":         {at, 9, unix.SYS_MQ_TIMEDSEND, "x", "running\n", false},
		"not shifted":          {at, 9, nr, "", "243 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc00000e00 0x9\n", true},
		"not shifted, another": {at + 16, 9, nr, "", "running\n", false},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "7"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "7", "syscall"), []byte(tt.syscall), 0o600); err != nil {
			t.Fatal(err)
		}
		proc, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		in := &Answerer{table: &process.Table{View: inspect.View{Proc: int(proc.Fd())}}}
		made := process.Timeout{At: at, Is: tt.is, Nr: nr, IP: 9}
		if got := in.again(&notify.Call{Task: 7, Nr: tt.nr, IP: tt.ip}, tt.at, &made); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		proc.Close()
	}
}
