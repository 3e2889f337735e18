package seglog_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A model is a log, a disk that is told when to fail, and what must be in it.
type model struct {
	disk    *faultfs.Memory
	log     *seglog.Log
	fault   atomic.Pointer[func(*faultfs.Call) error]
	records []string // acknowledged
	maybe   []string // behind them, after a failed sync
	failed  bool     // the log takes nothing until it is opened again
	n       int      // records made
	options seglog.Options
}

func (m *model) open(t *rapid.T) {
	m.options = seglog.Options{
		SegmentSize: int64(rapid.SampledFrom([]int{200, 1000, 5000}).Draw(t, "segment")), Prepare: rapid.Bool().Draw(t, "prepare"),
		MaxBlock: rapid.SampledFrom([]int{1, 200, 1 << 20}).Draw(t, "block"),
	}
	m.options.FS = &faultfs.Hook{Inner: m.disk, Before: func(c *faultfs.Call) error {
		if f := m.fault.Load(); f != nil {
			return (*f)(c)
		}
		return nil
	}}
	l, err := seglog.Open("/log", &m.options)
	if err != nil {
		t.Fatal(err)
	}
	m.log, m.failed = l, false
	m.settle(t)
}

func (m *model) read(t *rapid.T, from int) []string {
	var got []string
	for r, err := range m.log.Records(seglog.Pos(from)) {
		if err != nil {
			t.Fatal(err)
		}
		if int(r.Pos) != max(from, 1)+len(got) {
			t.Fatalf("record %d, want %d", r.Pos, max(from, 1)+len(got))
		}
		got = append(got, string(r.Data))
	}
	return got
}

// settle takes what an opened log holds of the records that may be there.
func (m *model) settle(t *rapid.T) {
	got := m.read(t, 0)
	if len(got) < len(m.records) || len(got) > len(m.records)+len(m.maybe) {
		t.Fatalf("%d records, %d to %d expected", len(got), len(m.records), len(m.records)+len(m.maybe))
	}
	m.records = append(m.records, m.maybe[:len(got)-len(m.records)]...)
	m.maybe = nil
	m.same(t, got, m.records)
}

func (m *model) same(t *rapid.T, got, want []string) {
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("holds\n%q\nwant\n%q", got, want)
	}
}

// append queues some records at once and waits for their answers.
func (m *model) append(t *rapid.T) {
	var wg sync.WaitGroup
	var acked, refused []string
	var last error
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		record := fmt.Sprintf("%d:%s", m.n, strings.Repeat("r", rapid.SampledFrom([]int{0, 10, 100, 600}).Draw(t, "size")))
		m.n++
		wg.Add(1)
		err := m.log.Append(context.Background(), 0, []byte(record), func(pos seglog.Pos, err error) {
			defer wg.Done()
			if err != nil {
				refused, last = append(refused, record), err
				return
			}
			acked = append(acked, record)
			if int(pos) != len(m.records)+len(acked) {
				t.Errorf("position %d, want %d", pos, len(m.records)+len(acked))
			}
		})
		if err != nil {
			if !errors.Is(err, seglog.ErrFailed) {
				t.Fatal(err)
			}
			wg.Done()
		}
	}
	wg.Wait()
	if m.failed && len(acked) > 0 {
		t.Fatalf("acknowledged after ErrFailed: %q", acked)
	}
	m.records = append(m.records, acked...)
	if errors.Is(last, seglog.ErrFailed) {
		m.failed, m.maybe = true, append(m.maybe, refused...)
	}
}

// broken appends while one call of a kind fails.
func (m *model) broken(t *rapid.T, ops ...faultfs.Op) {
	keep := rapid.IntRange(0, 1000).Draw(t, "keep")
	left := int64(rapid.IntRange(0, 3).Draw(t, "calls before"))
	var n atomic.Int64
	fault := func(c *faultfs.Call) error {
		for _, op := range ops {
			if c.Op == op && n.Add(1) == left+1 {
				if op == faultfs.OpSync {
					m.disk.Drop(c.Name)
				}
				c.Keep = keep
				return syscall.EIO
			}
		}
		return nil
	}
	m.fault.Store(&fault)
	defer m.fault.Store(nil)
	m.append(t)
}

// forget leaves a log behind as a process does that is killed: it touches the disk no more.
func (m *model) forget() {
	gone := func(*faultfs.Call) error { return io.ErrClosedPipe }
	m.fault.Store(&gone)
	m.log.Close(context.Background())
	m.fault.Store(nil)
}

// init has the model tried on fewer examples than rapid would, unless TAPEDECK_LONG is set.
func init() {
	if err := flag.Set("rapid.checks", strconv.Itoa(pick(30, 100))); err != nil {
		panic(err)
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{disk: faultfs.NewMemory()}
		m.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"append":    m.append,
			"bad write": func(t *rapid.T) { m.broken(t, faultfs.OpWrite) },
			"bad sync":  func(t *rapid.T) { m.broken(t, faultfs.OpSync, faultfs.OpSyncDir) },
			"bad name":  func(t *rapid.T) { m.broken(t, faultfs.OpOpen, faultfs.OpRename) },
			"bad space": func(t *rapid.T) { m.broken(t, faultfs.OpTruncate) },
			"close": func(t *rapid.T) {
				if err := m.log.Close(context.Background()); (err != nil) != m.failed {
					t.Fatal(err)
				}
				m.open(t)
			},
			"killed": func(t *rapid.T) {
				m.forget()
				m.open(t)
			},
			"power cut": func(t *rapid.T) {
				m.forget()
				m.disk = m.disk.PowerCut(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "luck"), 1)))
				m.open(t)
			},
			"": func(t *rapid.T) {
				from := rapid.IntRange(0, len(m.records)+2).Draw(t, "from")
				m.same(t, m.read(t, from), m.records[min(len(m.records), max(0, from-1)):])
			},
		})
		m.forget()
	})
}
