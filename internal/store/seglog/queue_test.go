package seglog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A gate lets a test hold the committer in its next sync.
type gate struct {
	held chan struct{} // a sync has come
	free chan error    // and may go on, or fails
}

// gated is a log on a disk in memory whose syncs of blocks wait for the test.
func gated(t *testing.T, o seglog.Options) (*seglog.Log, *gate) {
	g := &gate{make(chan struct{}), make(chan error)}
	var on atomic.Bool
	o.FS = &faultfs.Hook{Inner: faultfs.NewMemory(), Before: func(c *faultfs.Call) error {
		if c.Op != faultfs.OpSync || !on.Load() {
			return nil
		}
		g.held <- struct{}{}
		return <-g.free
	}}
	l, err := seglog.Open("/log", &o)
	if err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	t.Cleanup(func() {
		on.Store(false)
		l.Close(context.Background())
	})
	return l, g
}

func (g *gate) pass(err error) { <-g.held; g.free <- err }

// TestTheNextBlockFillsMeanwhile: what comes while a block is being synced is one block, however much it is.
func TestTheNextBlockFillsMeanwhile(t *testing.T) {
	var batches []seglog.Batch
	l, g := gated(t, seglog.Options{Committed: func(b seglog.Batch) { batches = append(batches, b) }})
	var order []seglog.Pos
	var last sync.WaitGroup
	add := func() {
		last.Add(1)
		err := l.Append(t.Context(), 0, []byte("record"), func(pos seglog.Pos, err error) {
			if err != nil {
				t.Error(err)
			}
			order = append(order, pos)
			last.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add()
	<-g.held
	for range 999 {
		add()
	}
	if got := l.End(); got != 1 {
		t.Errorf("the end is %d before anything is on the disk", got)
	}
	for range l.Records(0) {
		t.Error("a record shows that is not on the disk")
	}
	g.free <- nil
	g.pass(nil)
	last.Wait()
	for i, pos := range order {
		if pos != seglog.Pos(i+1) {
			t.Fatalf("acknowledgement %d is of record %d", i+1, pos)
		}
	}
	if len(order) != 1000 || len(batches) != 2 || batches[0].Records != 1 || batches[1].Records != 999 || batches[1].First != 2 {
		t.Errorf("%d acknowledged, batches %+v", len(order), batches)
	}
	s := l.Stats()
	if s.Blocks != 2 || s.Records != 1000 || s.Bytes != uint64(batches[0].Bytes+batches[1].Bytes) || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAnEpochEnds: what was queued behind a block that fails fails with it, and what was built on that is refused.
func TestAnEpochEnds(t *testing.T) {
	var fail atomic.Bool
	disk := faultfs.NewMemory()
	held, free := make(chan struct{}), make(chan struct{})
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpWrite && strings.HasSuffix(c.Name, ".seg") && fail.CompareAndSwap(true, false) {
			held <- struct{}{}
			<-free
			return syscall.ENOSPC
		}
		return nil
	}}
	l := open(t, "/log", &seglog.Options{FS: hook})
	appendAll(t, l, "first")
	epoch := l.Epoch()
	fail.Store(true)
	var answers []error
	var wg sync.WaitGroup
	put := func(epoch seglog.Epoch, record string) error {
		wg.Add(1)
		err := l.Append(t.Context(), epoch, []byte(record), func(_ seglog.Pos, err error) {
			answers = append(answers, err)
			wg.Done()
		})
		if err != nil {
			wg.Done()
		}
		return err
	}
	if err := put(epoch, "second"); err != nil {
		t.Fatal(err)
	}
	<-held
	if err := errors.Join(put(epoch, "third"), put(0, "fourth")); err != nil {
		t.Fatal(err)
	}
	close(free)
	wg.Wait()
	if len(answers) != 3 {
		t.Fatal(answers)
	}
	for _, err := range answers {
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, seglog.ErrFailed) {
			t.Error(err)
		}
	}
	if err := put(epoch, "fifth"); !errors.Is(err, seglog.ErrEpoch) {
		t.Errorf("an append of a past epoch: %v", err)
	}
	if l.Epoch() != epoch+1 {
		t.Errorf("epoch %d after %d", l.Epoch(), epoch)
	}
	if err := put(l.Epoch(), "second again"); err != nil {
		t.Error(err)
	}
	wg.Wait()
	equal(t, all(t, l, 0), []string{"first", "second again"})
	if s := l.Stats(); s.Failed != 3 {
		t.Errorf("%+v", s)
	}
}

// TestAFullQueue: appends wait for room in their order, and can be called off.
func TestAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := gated(t, seglog.Options{MaxBlock: 300})
		var got []string
		put := func(ctx context.Context, record string, done chan<- error) {
			err := l.Append(ctx, 0, []byte(record), func(_ seglog.Pos, err error) { got = append(got, record) })
			if done != nil {
				done <- err
			} else if err != nil {
				t.Error(err)
			}
		}
		long := func(name string) string { return name + strings.Repeat(".", 200) }
		put(t.Context(), "1", nil)
		<-g.held
		put(t.Context(), long("2"), nil)
		results := map[string]chan error{}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("called off")
		for _, record := range []string{long("3"), "4", long("5"), "6"} { // "4" would fit, and waits behind "3"
			c := t.Context()
			if record == long("5") {
				c = ctx
			}
			results[record] = make(chan error, 1)
			go put(c, record, results[record])
			synctest.Wait()
			if len(results[record]) != 0 {
				t.Fatalf("%.3s did not wait: %v", record, <-results[record])
			}
		}
		cancel(why)
		if err := <-results[long("5")]; !errors.Is(err, why) {
			t.Error(err)
		}
		g.free <- nil
		g.pass(nil)
		g.pass(nil) // "3", "4" and "6"
		for _, record := range []string{long("3"), "4", "6"} {
			if err := <-results[record]; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		equal(t, got, []string{"1", long("2"), long("3"), "4", "6"})
		equal(t, all(t, l, 0), got)
	})
}

// TestCloseBringsWhatIsQueuedToTheDisk, waiters too, and refuses what comes later.
func TestCloseBringsWhatIsQueuedToTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g := gated(t, seglog.Options{MaxBlock: 100})
		answers := make(chan error, 10)
		for i := range 5 {
			go func() {
				_, err := l.AppendWait(t.Context(), []byte(strings.Repeat(fmt.Sprint(i), 60)))
				answers <- err
			}()
			synctest.Wait()
		}
		<-g.held
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := l.AppendWait(t.Context(), []byte("late")); !errors.Is(err, seglog.ErrClosed) {
			t.Error(err)
		}
		closed := make(chan error)
		go func() { closed <- l.Close(t.Context()) }()
		g.free <- nil
		for range 4 + 2 { // blocks, then the files at the end
			g.pass(nil)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		for range 5 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if n := len(all(t, l, 0)); n != 5 {
			t.Errorf("%d records", n)
		}
	})
}

// TestRecordsOfAnySize: none, one byte, longer than a block, longer than a segment.
func TestRecordsOfAnySize(t *testing.T) {
	dir := t.TempDir()
	o := &seglog.Options{MaxBlock: 1000, SegmentSize: 5000}
	l := open(t, dir, o)
	var want []string
	for _, n := range []int{0, 1, 127, 128, 999, 1000, 1001, 4999, 5000, 100_000, 0, 3 << 20, 1} {
		want = append(want, strings.Repeat("\xf5blk", n/4+1)[:n])
	}
	appendAll(t, l, want...)
	equal(t, all(t, l, 0), want)
	if _, err := l.AppendWait(t.Context(), make([]byte, seglog.MaxRecord+1)); !errors.Is(err, seglog.ErrTooLarge) {
		t.Error(err)
	}
	shut(t, l)
	l = open(t, dir, o)
	equal(t, all(t, l, 0), want)
	for from := range want {
		equal(t, all(t, l, seglog.Pos(from+1)), want[from:])
	}
	equal(t, all(t, l, l.End()), nil)
	equal(t, all(t, l, l.End()+5), nil)
}

// TestAppendCopies: the record may change as soon as Append returns.
func TestAppendCopies(t *testing.T) {
	l, g := gated(t, seglog.Options{})
	b := []byte("before")
	done := make(chan struct{})
	put := func() {
		copy(b, "before")
		if err := l.Append(t.Context(), 0, b, func(seglog.Pos, error) { done <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		copy(b, "behind")
	}
	put()
	<-g.held
	put() // it waits, the first one is on its way
	g.free <- nil
	<-done
	g.pass(nil)
	<-done
	equal(t, all(t, l, 0), []string{"before", "before"})
}

// TestReadWhileAppending: readers see a part that only grows, and every record of it.
func TestReadWhileAppending(t *testing.T) {
	l := open(t, t.TempDir(), &seglog.Options{SegmentSize: 20_000})
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		wg.Go(func() {
			for b := make([]byte, 60); !stop.Load(); {
				if _, err := l.AppendWait(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for round := range pick(50, 500) {
		end := l.End()
		from := max(1, end/2)
		for r, err := range l.Records(from) {
			if err != nil || r.Pos != from || len(r.Data) != 60 {
				t.Fatal(round, r.Pos, from, err)
			}
			from++
		}
		if from < end {
			t.Fatalf("read up to %d, the end was %d", from, end)
		}
	}
	stop.Store(true)
	wg.Wait()
}

// TestMemoryIsBounded: 2,000 appenders of 16 KiB each find room one after another.
func TestMemoryIsBounded(t *testing.T) {
	const maxBlock = 1 << 20
	slow := &faultfs.Hook{Inner: faultfs.OS, Before: func(*faultfs.Call) error { runtime.Gosched(); return nil }}
	var most, base uint64
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	o := &seglog.Options{FS: slow, MaxBlock: maxBlock}
	blocks := 0
	o.Committed = func(b seglog.Batch) {
		if b.Bytes > maxBlock {
			t.Errorf("a block of %d bytes", b.Bytes)
		}
		if blocks++; blocks%8 == 0 {
			most = max(most, measure())
		}
	}
	l := open(t, t.TempDir(), o)
	record := make([]byte, 16<<10)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 2000 {
		wg.Go(func() {
			<-start
			if _, err := l.AppendWait(t.Context(), record); err != nil {
				t.Error(err)
			}
		})
	}
	base = measure()
	close(start)
	wg.Wait()
	if most == 0 {
		t.Fatal("nothing was measured")
	}
	t.Logf("%d KiB more than the appenders alone, in %d blocks", (int64(most)-int64(base))>>10, blocks)
	if most > base+6*maxBlock { // two blocks, each up to twice its size while it grew
		t.Errorf("%d KiB", (most-base)>>10)
	}
}

// TestAppendAllocates next to nothing.
func TestAppendAllocates(t *testing.T) {
	l := open(t, "/log", &seglog.Options{FS: &devNull{Memory: faultfs.NewMemory()}})
	record := binary.LittleEndian.AppendUint64(nil, 1)
	answer := make(chan struct{}, 1)
	done := func(seglog.Pos, error) { answer <- struct{}{} }
	n := testing.AllocsPerRun(1000, func() {
		if err := l.Append(context.Background(), 0, record, done); err != nil {
			t.Error(err)
		}
		<-answer
	})
	if n >= 1 {
		t.Errorf("%v allocations an append", n)
	}
}

// A devNull forgets what is written to its segments.
type devNull struct{ *faultfs.Memory }

func (d *devNull) OpenFile(name string, flag int, perm os.FileMode) (faultfs.File, error) {
	f, err := d.Memory.OpenFile(name, flag, perm)
	return forgetful{f}, err
}

type forgetful struct{ faultfs.File }

func (forgetful) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (forgetful) Sync() error                            { return nil }

// TestWaitersWhenAnEpochEnds: those of the past epoch are refused, those of any are queued in the next, even when the log is
// closing; after a failed sync all are refused.
func TestWaitersWhenAnEpochEnds(t *testing.T) {
	for name, c := range map[string]struct {
		op        faultfs.Op
		closing   bool
		past, any error
	}{
		"write":          {faultfs.OpWrite, false, seglog.ErrEpoch, nil},
		"write, closing": {faultfs.OpWrite, true, seglog.ErrEpoch, nil},
		"sync":           {faultfs.OpSync, false, seglog.ErrFailed, seglog.ErrFailed},
		"sync, closing":  {faultfs.OpSync, true, seglog.ErrFailed, seglog.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fail atomic.Bool
				free := make(chan struct{})
				hook := &faultfs.Hook{Inner: faultfs.NewMemory(), Before: func(call *faultfs.Call) error {
					if call.Op == c.op && fail.CompareAndSwap(true, false) {
						<-free
						return syscall.EIO
					}
					return nil
				}}
				l := open(t, "/log", &seglog.Options{FS: hook, MaxBlock: 100})
				epoch := l.Epoch()
				fail.Store(true)
				put := func(epoch seglog.Epoch) <-chan error {
					answer := make(chan error, 1)
					go func() {
						err := l.Append(t.Context(), epoch, make([]byte, 60), func(_ seglog.Pos, err error) { answer <- err })
						if err != nil {
							answer <- err
						}
					}()
					synctest.Wait()
					return answer
				}
				failed := []<-chan error{put(0), put(epoch)} // the first is being written, the second fills the next block
				waiting := []<-chan error{put(0), put(epoch), put(0)}
				if c.closing {
					go l.Close(t.Context())
					synctest.Wait()
				}
				close(free)
				for i, answer := range failed {
					if err := <-answer; !errors.Is(err, syscall.EIO) {
						t.Errorf("queued append %d: %v", i, err)
					}
				}
				for i, want := range []error{c.any, c.past, c.any} {
					if err := <-waiting[i]; !errors.Is(err, want) {
						t.Errorf("waiting append %d: %v, want %v", i, err, want)
					}
				}
			})
		})
	}
}
