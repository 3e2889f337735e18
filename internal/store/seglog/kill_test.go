package seglog_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// childVar says what this test program is to do instead of its tests.
const childVar = "TAPEDECK_SEGLOG_CHILD"

// jobs are what a child of the tests can be told to do.
var jobs = map[string]func(args []string) error{
	"write": func(args []string) error { return writeUntilKilled(args[0], args[1]) },
}

func TestMain(m *testing.M) {
	job := strings.Fields(os.Getenv(childVar))
	if len(job) == 0 {
		os.Exit(m.Run())
	}
	if err := jobs[job[0]](job[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t testing.TB, job ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), childVar+"="+strings.Join(job, " "))
	c.Stderr = os.Stderr
	return c
}

const writers = 8

// writeUntilKilled appends records "life writer number" and prints "position record" for each that is acknowledged.
func writeUntilKilled(dir, life string) error {
	l, err := seglog.Open(dir, &seglog.Options{SegmentSize: 100_000})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range writers {
		go func() {
			for i := 0; ; i++ {
				record := fmt.Sprintf("%s %d %d %s", life, w, i, strings.Repeat("x", (i*w*37)%3000))
				acked := make(chan error, 1)
				err := l.Append(context.Background(), 0, []byte(record), func(pos seglog.Pos, err error) {
					if err == nil {
						_, err = fmt.Fprintf(os.Stdout, "%d %s %d %d\n", pos, life, w, i) // one write: whole or not at all
					}
					acked <- err
				})
				if err == nil {
					err = <-acked
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// TestKilled kills a process that writes, over and over, at any moment.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	acked := map[seglog.Pos]string{}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for life := range pick(6, 200) {
		c := child(t, "write", dir, fmt.Sprint(life))
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var kill sync.Once
		var killed atomic.Bool
		n := 0
		wait, until := time.Duration(r.IntN(30_000))*time.Microsecond, r.IntN(300)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil { // a line that is not whole was not read by anybody
				if err != io.EOF {
					t.Fatal(err)
				}
				break
			}
			if n++; n > until { // from a moment in the midst of it on
				kill.Do(func() { time.AfterFunc(wait, func() { killed.Store(true); c.Process.Kill() }) })
			}
			var pos seglog.Pos
			fmt.Sscan(line, &pos)
			_, record, _ := strings.Cut(strings.TrimSpace(line), " ")
			if other := acked[pos]; other != "" {
				t.Fatalf("position %d was acknowledged for %q and for %q", pos, other, record)
			}
			acked[pos] = record
		}
		if err := c.Wait(); !killed.Load() {
			t.Fatalf("the writer ended by itself: %v", err)
		}
		if life%3 != 1 { // else the next writer finds what this one left
			checkLives(t, dir, acked)
		}
	}
	checkLives(t, dir, acked)
	t.Logf("%d records acknowledged", len(acked))
}

// checkLives checks that each acknowledged record is where it was acknowledged, and that each writer's records are there
// once and in order.
func checkLives(t *testing.T, dir string, acked map[seglog.Pos]string) {
	t.Helper()
	l := open(t, dir, &seglog.Options{SegmentSize: 100_000})
	defer shut(t, l)
	found := 0
	next := map[string]int{}
	want := seglog.Pos(1)
	for r, err := range l.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Pos != want {
			t.Fatalf("position %d behind %d", r.Pos, want-1)
		}
		want++
		f := strings.Fields(string(r.Data))
		if a := acked[r.Pos]; a != "" {
			found++
			if a != strings.Join(f[:3], " ") {
				t.Fatalf("position %d holds %.40q, %q was acknowledged there", r.Pos, r.Data, a)
			}
		}
		writer := f[0] + " " + f[1]
		if f[2] != fmt.Sprint(next[writer]) {
			t.Fatalf("position %d: writer %s number %s, want %d", r.Pos, writer, f[2], next[writer])
		}
		next[writer]++
	}
	if found != len(acked) {
		t.Fatalf("%d records were acknowledged, %d of them are there", len(acked), found)
	}
}
