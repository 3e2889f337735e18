package seglog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// long says whether tests run in their long form.
var long = os.Getenv("TAPEDECK_LONG") != ""

func pick(short, longer int) int {
	if long {
		return longer
	}
	return short
}

// small is a log whose segments hold a few blocks.
func small(disk faultfs.FS) *seglog.Options { return &seglog.Options{FS: disk, SegmentSize: 1500} }

// A ledger is what a writer was told about its appends.
type ledger struct {
	mu       sync.Mutex
	appended []string // of the epoch that stands, from the first record on
	acked    int      // of them
	failed   []string
	errs     []error
	breaks   []string // what was wrong with the answers
}

// append queues a record and writes down its answer. The returned channel is closed then.
func (g *ledger) append(l *seglog.Log, record string) <-chan struct{} {
	answered := make(chan struct{})
	err := l.Append(context.Background(), 0, []byte(record), func(pos seglog.Pos, err error) {
		defer close(answered)
		g.mu.Lock()
		defer g.mu.Unlock()
		if err != nil {
			g.failed, g.errs = append(g.failed, record), append(g.errs, err)
			return
		}
		if len(g.failed) > 0 && errors.Is(g.errs[len(g.errs)-1], seglog.ErrFailed) {
			g.breaks = append(g.breaks, "acknowledged after ErrFailed: "+record)
		}
		g.appended = append(g.appended, record)
		g.acked++
		if int(pos) != g.acked {
			g.breaks = append(g.breaks, fmt.Sprintf("%s got position %d, want %d", record, pos, g.acked))
		}
	})
	if err != nil {
		g.mu.Lock()
		g.failed, g.errs = append(g.failed, record), append(g.errs, err)
		g.mu.Unlock()
		close(answered)
	}
	return answered
}

func (g *ledger) snapshot() (acked, failed []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.appended...), append([]string{}, g.failed...)
}

// work appends records in groups of growing size, several of them in one block, over several segments.
func (g *ledger) work(l *seglog.Log, name string) {
	for group := range 14 {
		var last <-chan struct{}
		for i := range group%4 + 1 {
			last = g.append(l, fmt.Sprintf("%s-%d.%d-%s", name, group, i, strings.Repeat("r", group*17)))
		}
		<-last
	}
}

// must checks that a disk opens and holds the acknowledged records in order, then at most some of those that are maybe
// there, in order. It returns what it holds.
func must(t testing.TB, disk *faultfs.Memory, when string, acked, maybe []string) []string {
	t.Helper()
	l, err := seglog.Open("/log", small(disk))
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	got := all(t, l, 0)
	if len(got) < len(acked) {
		t.Fatalf("%s: %d records, %d were acknowledged", when, len(got), len(acked))
	}
	equal(t, got[:len(acked)], acked)
	for i, r := range got[len(acked):] {
		if i >= len(maybe) || maybe[i] != r {
			t.Fatalf("%s: record %d is %.60q, nobody waits for that", when, len(acked)+i+1, r)
		}
	}
	cut := disk.PowerCut(rand.New(rand.NewPCG(1, 1))) // what was read once stays
	appendAll(t, l, "one more")
	cutLater := disk.PowerCut(rand.New(rand.NewPCG(1, 1)))
	shut(t, l)
	for after, want := range map[*faultfs.Memory][]string{cut: got, cutLater: append(got, "one more"), disk: append(got, "one more")} {
		l, err := seglog.Open("/log", small(after))
		if err != nil {
			t.Fatalf("%s, opened, and then: %v", when, err)
		}
		equal(t, all(t, l, 0), want)
		shut(t, l)
	}
	return got
}

// counted returns how many calls of the file system the work takes from the open to the close.
func counted(t *testing.T) (calls int) {
	var n atomic.Int64
	hook := &faultfs.Hook{Inner: faultfs.NewMemory(), Before: func(*faultfs.Call) error { n.Add(1); return nil }}
	l := open(t, "/log", small(hook))
	(&ledger{}).work(l, "a")
	shut(t, l)
	return int(n.Load())
}

// TestEveryCallIsTheLast kills the process, and then cuts the power, ahead of every call of the file system in turn.
func TestEveryCallIsTheLast(t *testing.T) {
	calls := counted(t)
	r := rand.New(rand.NewPCG(1, 1))
	type death struct {
		at    string
		acked []string
		disks []*faultfs.Memory
	}
	var all []death
	disk, g := faultfs.NewMemory(), &ledger{}
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		d := death{at: fmt.Sprintf("call %d of %d (%s %s)", len(all)+1, calls, c.Op, c.Name), disks: deaths(disk, r)}
		d.acked, _ = g.snapshot()
		all = append(all, d) // one call at a time: Open's, then the committer's
		return nil
	}}
	l := open(t, "/log", small(hook))
	g.work(l, "a")
	shut(t, l)
	for _, d := range all {
		for _, after := range d.disks {
			must(t, after, d.at, d.acked, g.appended[len(d.acked):])
		}
	}
	must(t, disk.PowerCut(r), "after the close", g.appended, nil)
}

// deaths are disks as they may be when the process or the machine dies now.
func deaths(disk *faultfs.Memory, r *rand.Rand) []*faultfs.Memory {
	all := []*faultfs.Memory{disk.Kill()}
	for range pick(3, 40) {
		all = append(all, disk.PowerCut(r))
	}
	return all
}

// TestAWriteDiesInTheMiddle kills the process after every count of bytes of a block that holds two records.
func TestAWriteDiesInTheMiddle(t *testing.T) {
	for keep := 0; ; keep++ {
		disk := faultfs.NewMemory()
		var fault atomic.Pointer[func(*faultfs.Call) error]
		hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
			if f := fault.Load(); f != nil {
				return (*f)(c)
			}
			return nil
		}}
		l := open(t, "/log", small(hook))
		appendAll(t, l, "first", "second")
		var dead *faultfs.Memory
		whole := false
		torn := func(c *faultfs.Call) error {
			switch {
			case c.Op == faultfs.OpWrite && dead == nil:
				c.Keep, whole = keep, keep >= c.Size
				return io.ErrShortWrite
			case c.Op == faultfs.OpTruncate && dead == nil: // the process dies before it can cut that off
				dead = disk.Kill()
			}
			return nil
		}
		fault.Store(&torn)
		if _, err := l.AppendWait(t.Context(), []byte("third, which is longer")); !errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
		must(t, dead, fmt.Sprintf("%d bytes written", keep), []string{"first", "second"}, []string{"third, which is longer"})
		fault.Store(nil)
		for i := range uint64(10) {
			must(t, disk.PowerCut(rand.New(rand.NewPCG(i, 1))), "what failed came back", []string{"first", "second"}, nil)
		}
		equal(t, all(t, l, 0), []string{"first", "second"})
		appendAll(t, l, "third again")
		shut(t, l)
		must(t, disk.PowerCut(rand.New(rand.NewPCG(1, 1))), "went on", []string{"first", "second", "third again"}, nil)
		if whole {
			return
		}
	}
}

// TestEveryCallFailsOnce fails every call of the file system in turn, writes after a part of them. Whatever was
// acknowledged is there afterwards, whatever failed is not, but for ErrFailed.
func TestEveryCallFailsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	calls := counted(t)
	outcomes := map[string]int{}
	for k := 1; k <= calls; k++ {
		disk := faultfs.NewMemory()
		var n atomic.Int64
		var at string
		var paused atomic.Bool
		hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
			if paused.Load() || n.Add(1) != int64(k) {
				return nil
			}
			at = fmt.Sprintf("call %d (%s %s)", k, c.Op, filepath.Base(c.Name))
			if c.Op == faultfs.OpSync {
				disk.Drop(c.Name)
			}
			c.Keep = r.IntN(c.Size + 1)
			return syscall.EIO
		}}
		l, err := seglog.Open("/log", small(hook))
		if err != nil {
			outcomes["open failed"]++
			must(t, disk.Kill(), at, nil, nil)
			must(t, disk.PowerCut(r), at, nil, nil)
			continue
		}
		g := &ledger{}
		g.work(l, "a")
		acked, failed := g.snapshot()
		if len(g.breaks) > 0 {
			t.Fatalf("%s: %s", at, strings.Join(g.breaks, "; "))
		}
		paused.Store(true) // reading is no part of the work
		equal(t, all(t, l, 0), acked)
		paused.Store(false)
		var maybe []string
		fatal := len(g.errs) > 0 && errors.Is(g.errs[len(g.errs)-1], seglog.ErrFailed)
		if fatal {
			maybe = failed
		}
		switch closed := l.Close(t.Context()); {
		case fatal != errors.Is(closed, seglog.ErrFailed):
			t.Fatalf("%s: close says %v", at, closed)
		case fatal:
			outcomes["ended the log"]++
		case len(failed) > 0:
			outcomes["failed appends"]++
		default:
			outcomes["nothing"]++
		}
		if !fatal && len(acked)+len(failed) != 14*5/2-2 {
			t.Fatalf("%s: %d acknowledged, %d failed", at, len(acked), len(failed))
		}
		must(t, disk.PowerCut(r), at+", power cut", acked, maybe)
		must(t, disk, at, acked, maybe)
	}
	t.Log(outcomes)
	for _, want := range []string{"open failed", "ended the log", "failed appends", "nothing"} {
		if outcomes[want] == 0 {
			t.Errorf("no call ended in %q", want)
		}
	}
}

// TestAFailedSyncIsTheEnd: one sync fails and drops what it should have written, every later one would succeed.
func TestAFailedSyncIsTheEnd(t *testing.T) {
	disk := faultfs.NewMemory()
	var fail atomic.Bool
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpSync && fail.CompareAndSwap(true, false) {
			disk.Drop(c.Name)
			return syscall.EIO
		}
		return nil
	}}
	l := open(t, "/log", small(hook))
	appendAll(t, l, "first")
	fail.Store(true)
	if _, err := l.AppendWait(t.Context(), []byte("second")); !errors.Is(err, seglog.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("want ErrFailed with its cause, got %v", err)
	}
	for range 3 {
		if _, err := l.AppendWait(t.Context(), []byte("third")); !errors.Is(err, seglog.ErrFailed) {
			t.Fatalf("a retry was believed: %v", err)
		}
	}
	equal(t, all(t, l, 0), []string{"first"})
	if err := l.Close(t.Context()); !errors.Is(err, seglog.ErrFailed) {
		t.Fatal(err)
	}
	equal(t, must(t, disk.PowerCut(rand.New(rand.NewPCG(1, 1))), "power cut", []string{"first"}, nil), []string{"first"})

	// The page cache still shows the second record. Once Open has shown it, no loss of power may take it away.
	l = open(t, "/log", small(disk))
	equal(t, all(t, l, 0), []string{"first", "second"})
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		must(t, disk.PowerCut(r), "power cut after the log was opened again", []string{"first", "second"}, nil)
	}
}

// TestAFullDisk: writes fail until there is room again.
func TestAFullDisk(t *testing.T) {
	disk := faultfs.NewMemory()
	var room atomic.Int64
	room.Store(1 << 40)
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpWrite {
			if left := room.Add(int64(-c.Size)); left < 0 && filepath.Base(c.Name) != "mark" {
				c.Keep = max(0, int(left)+c.Size)
				return syscall.ENOSPC
			}
		}
		return nil
	}}
	l := open(t, "/log", small(hook))
	want := []string{}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 40 {
		epoch := l.Epoch()
		for i := range 3 {
			record := fmt.Sprintf("round %d.%d %s", round, i, strings.Repeat("x", round*5))
			appendAll(t, l, record)
			want = append(want, record)
		}
		room.Store(int64(r.IntN(150)))
		for range 2 {
			if _, err := l.AppendWait(t.Context(), []byte(strings.Repeat("too much", 20))); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, seglog.ErrFailed) {
				t.Fatal(err)
			}
		}
		if got := l.Epoch(); got != epoch+2 {
			t.Fatalf("epoch %d after two failures in epoch %d", got, epoch)
		}
		room.Store(1 << 40)
	}
	equal(t, all(t, l, 0), want)
	shut(t, l)
	must(t, disk.PowerCut(r), "after all", want, nil)
}
