package seglog_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

func init() {
	jobs["fill"] = func(args []string) error {
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		return fill(args[0], size)
	}
}

// TestAFullFileSystem fills a file system of 400 KiB in a mount namespace of its own: in the middle of a block, and where a
// new segment begins.
func TestAFullFileSystem(t *testing.T) {
	for _, segmentSize := range []string{"1000000", "50000"} {
		c := child(t, "fill", t.TempDir(), segmentSize)
		c.Stdout = os.Stdout
		c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Skip("no file system can be mounted here; TestAFullDisk does the same with a disk in memory: ", err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// fill mounts a small file system and fills it: appends fail, none of them is lost or appears; with room again they succeed.
func fill(dir string, segmentSize int64) error {
	if err := unix.Mount("tapedeck-test", dir, "tmpfs", 0, "size=400k"); err != nil {
		return err
	}
	filler := dir + "/filler"
	if err := os.WriteFile(filler, make([]byte, 300<<10), 0o600); err != nil {
		return err
	}
	o := &seglog.Options{SegmentSize: segmentSize}
	l, err := seglog.Open(dir+"/log", o)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var want []string
	put := func() error {
		record := fmt.Sprintf("%d %s", len(want), strings.Repeat("x", 997*len(want)%5000))
		_, err := l.AppendWait(ctx, []byte(record))
		if err == nil {
			want = append(want, record)
		}
		return err
	}
	var full error
	for full == nil && len(want) < 10_000 {
		full = put()
	}
	fmt.Printf("full after %d records: %v\n", len(want), full)
	if again := put(); again == nil || full == nil {
		return fmt.Errorf("the file system is full, and the errors are %w and then %w", full, again)
	}
	before := len(want)
	if err := os.Remove(filler); err != nil {
		return err
	}
	for range 20 {
		if err := put(); err != nil {
			return fmt.Errorf("with room again, %d records later: %w", len(want)-before, err)
		}
	}
	for round := range 2 {
		n := 0
		for r, err := range l.Records(0) {
			if err != nil || string(r.Data) != want[n] {
				return fmt.Errorf("round %d: record %d is %.20q, error %w", round, n, r.Data, err)
			}
			n++
		}
		if n != len(want) {
			return fmt.Errorf("round %d: %d records, want %d", round, n, len(want))
		}
		if err := l.Close(ctx); err != nil {
			return err
		}
		if round == 0 {
			if l, err = seglog.Open(dir+"/log", o); err != nil {
				return err
			}
		}
	}
	return nil
}
