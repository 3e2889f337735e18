package jail

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// BenchmarkStart measures what a jail adds to a program that does nothing.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		run(b, shellConfig(b, ""), nil)
	}
}

// BenchmarkCalls measures single calls of a program inside, with a Watcher that does nothing and without one.
func BenchmarkCalls(b *testing.B) {
	for _, name := range []string{"getpid", "read", "openrel", "create", "createrel", "chmod", "untar"} {
		for _, watch := range []string{"plain", "watched"} {
			b.Run(name+"/"+watch, func(b *testing.B) { benchCall(b, name, watch == "watched") })
		}
	}
}

func benchCall(b *testing.B, name string, watched bool) {
	dir := testDir(b)
	mustWrite(b, filepath.Join(dir, "file"), "content")
	c := helperConfig(b, "bench", name, strconv.Itoa(max(b.N, 1)), dir)
	c.Dir, c.Writable = dir, []string{dir}
	if watched {
		c.Watch = nothing{}
	}
	r := run(b, c, nil)
	ns, err := strconv.Atoi(strings.TrimSpace(r.stdout))
	if err != nil {
		b.Fatal(r.stdout, r.stderr)
	}
	b.ReportMetric(float64(ns)/float64(b.N), "ns/op")
}

// BenchmarkEnd measures how long a jail takes to end whose program has written much into an overlay.
func BenchmarkEnd(b *testing.B) {
	for name, script := range map[string]string{
		"bytes": "head -c 200m /dev/zero >f",
		"files": "seq 20000 | split -l 1 -a 4 -",
	} {
		b.Run(name, func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				took += endOf(b, script)
			}
			b.ReportMetric(float64(took)/float64(b.N), "ns/op")
		})
	}
}

// endOf runs a script in an overlay and returns how long Close took.
func endOf(b *testing.B, script string) time.Duration {
	dir := testDir(b)
	c := shellConfig(b, script)
	c.Dir, c.Overlays = dir, []mount.Overlay{overlay(b, dir)}
	j, err := Start(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		b.Fatal(err)
	}
	if x, err := j.Wait(); err != nil || x != (Exit{}) {
		b.Fatal(x, err)
	}
	start := time.Now()
	j.Close()
	return time.Since(start)
}

// BenchmarkSpawn measures how long a program inside takes to start another and wait for its end: with nobody told of spawns,
// with a watcher that is not told of it (no pipes), that lets it be (pipes), and that puts its own streams there.
func BenchmarkSpawn(b *testing.B) {
	for _, name := range []string{"quiet", "talk"} {
		for _, spawns := range []string{"plain", "told", "swapped"} {
			if name == "quiet" && spawns == "swapped" {
				continue
			}
			b.Run(name+"/"+spawns, func(b *testing.B) {
				c := helperConfig(b, "spawnbench", name, strconv.Itoa(max(b.N, 1)))
				switch spawns {
				case "told":
					c.Spawns = nothing{}
				case "swapped":
					c.Spawns = swapper{}
				}
				r := run(b, c, nil)
				ns, err := strconv.Atoi(strings.TrimSpace(r.stdout))
				if err != nil {
					b.Fatal(r.stdout, r.stderr)
				}
				b.ReportMetric(float64(ns)/float64(b.N), "ns/op")
			})
		}
	}
}

// helperSpawnbench starts a program that does nothing so many times and prints how many nanoseconds that took.
func helperSpawnbench(args []string) int {
	n, _ := strconv.Atoi(args[1])
	start := time.Now()
	for range n {
		cmd := exec.Command("/bin/true")
		if args[0] == "talk" {
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			defer in.Close()
			defer out.Close()
		}
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(time.Since(start).Nanoseconds())
	return 0
}

// swapper is a SpawnWatcher that puts streams of its own there and drops what stood there.
type swapper struct{}

func (swapper) Spawning(s *Spawn) *SpawnAnswer {
	st, err := s.Streams()
	if err != nil {
		return nil
	}
	for _, f := range append(st.Far[:], st.Near[:]...) {
		f.Close()
	}
	return &SpawnAnswer{Stdio: st.Put}
}

// nothing is a Watcher that does nothing.
type nothing struct{}

func (nothing) Spawning(*Spawn) *SpawnAnswer { return nil }

func (nothing) Changing(*FileCall) (func() error, error) { return nil, nil }

// helperBench makes a call so many times in a directory and prints how many nanoseconds that took.
func helperBench(args []string) int {
	n, _ := strconv.Atoi(args[1])
	dir := args[2]
	file := filepath.Join(dir, "file")
	start := time.Now()
	for i := range n {
		var err error
		switch args[0] {
		case "getpid":
			unix.Getpid()
		case "read":
			err = openClose(file, unix.O_RDONLY)
		case "openrel":
			err = openClose("file", unix.O_RDONLY)
		case "create":
			err = openClose(file, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
		case "createrel":
			err = openClose("file", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
		case "chmod":
			err = unix.Chmod(file, 0o644)
		case "untar":
			err = untarOne(dir, i)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(time.Since(start).Nanoseconds())
	return 0
}

func openClose(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0o644)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// untarOne does what tar does for one file of 2 KiB in directories of a hundred.
func untarOne(dir string, i int) error {
	parent := filepath.Join(dir, strconv.Itoa(i/100))
	if i%100 == 0 {
		if err := unix.Mkdir(parent, 0o755); err != nil {
			return err
		}
	}
	fd, err := unix.Open(filepath.Join(parent, strconv.Itoa(i)), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, make([]byte, 2048)); err != nil {
		return err
	}
	now := unix.NsecToTimespec(time.Now().UnixNano())
	times := []unix.Timespec{now, now}
	if _, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times[0])), 0, 0, 0); errno != 0 {
		return errno
	}
	return unix.Fchmod(fd, 0o644)
}
