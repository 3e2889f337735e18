package wasi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// resolution of both clocks in ns, as a module that asks is told.
const resolution = 1_000_000

// ahead is how much the module's monotonic clock is ahead of the bench's.
const ahead = time.Millisecond

func (r *run) walltime() (sec int64, nsec int32) {
	r.reading()
	t, err := r.b.Clock().ReadWall()
	if err != nil {
		r.abort(err)
	}
	return t.Unix(), int32(t.Nanosecond())
}

func (r *run) nanotime() int64 {
	r.reading()
	d, err := r.b.Clock().ReadMonotonic()
	if err != nil {
		r.abort(err)
	}
	return int64(d + ahead)
}

// reading counts: on a clock that stands still, a loop that waits for the time to come never ends.
func (r *run) reading() {
	if r.reads++; r.reads > r.o.Reads && r.b.Clock().Paused() {
		r.abort(&LimitError{Limit: "reads", What: fmt.Sprintf("the module read the clock %d times while it stood still; "+
			"time passes for who sleeps, or with a real clock (--clock real, Config.Clock.Real)", r.o.Reads)})
	}
}

// happened says that the module did anything else than read the clock.
func (r *run) happened() { r.reads = 0 }

// Layouts of poll_oneoff, in bytes.
const (
	subscriptionSize = 48 // userdata 8, tag 1 at 8, its body at 16: of a clock id 4, timeout 8 at 24, flags 2 at 40
	eventSize        = 32 // userdata 8, errno 2, type 1
)

// What a subscription waits for.
const (
	tagClock = iota
	tagRead
	tagWrite
)

// Errors of WASI, as numbers.
const (
	errnoFault = 21
	errnoInval = 28
)

// pollOneoff stands in for wazero's, which knows no absolute times and says that every time has come when the first has. Files are
// always ready, so a module that waits for one waits for nothing; else the clock moves to the earliest of its times.
func pollOneoff(ctx context.Context, m api.Module, stack []uint64) {
	r, in, out, n, count := running(ctx), uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	subs, fits := read(m, in, uint64(n)*subscriptionSize)
	events, fitsOut := read(m, out, uint64(n)*eventSize)
	if !fits || !fitsOut {
		stack[0] = errnoFault
		return
	}
	waits, ok := r.waits(subs)
	if !ok || n == 0 {
		stack[0] = errnoInval
		return
	}
	due := earliest(waits)
	r.sleep(due)
	stack[0] = 0
	if !m.Memory().WriteUint32Le(count, writeEvents(events, subs, waits, due)) {
		stack[0] = errnoFault
	}
}

// read returns a view of n bytes of the module's memory.
func read(m api.Module, at uint32, n uint64) ([]byte, bool) {
	if n > math.MaxUint32 {
		return nil, false
	}
	return m.Memory().Read(at, uint32(n))
}

// waits returns how long each subscription waits; false where one is not understood.
func (r *run) waits(subs []byte) ([]time.Duration, bool) {
	all := make([]time.Duration, 0, len(subs)/subscriptionSize)
	for ; len(subs) > 0; subs = subs[subscriptionSize:] {
		switch tag := subs[8]; tag {
		case tagClock:
			d, ok := r.waitOf(binary.LittleEndian.Uint32(subs[16:]), binary.LittleEndian.Uint64(subs[24:]), binary.LittleEndian.Uint16(subs[40:]))
			if !ok {
				return nil, false
			}
			all = append(all, d)
		case tagRead, tagWrite:
			all = append(all, 0)
		default:
			return nil, false
		}
	}
	return all, true
}

// waitOf returns how long a clock's subscription waits, in whole milliseconds that hold it.
func (r *run) waitOf(clock uint32, ns uint64, flags uint16) (time.Duration, bool) {
	const absolute = 1
	d := time.Duration(min(ns, math.MaxInt64-uint64(resolution)))
	switch {
	case clock > 1 || flags > absolute:
		return 0, false
	case flags == absolute && clock == 0:
		sec, nsec := r.walltime()
		d -= time.Duration(sec)*time.Second + time.Duration(nsec)
	case flags == absolute:
		d -= time.Duration(r.nanotime())
	}
	return (max(d, 0) + resolution - 1) / resolution * resolution, true
}

func earliest(waits []time.Duration) time.Duration {
	due := time.Duration(math.MaxInt64)
	for _, d := range waits {
		due = min(due, d)
	}
	return due
}

func (r *run) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	r.happened()
	if err := r.b.Clock().Sleep(r.ctx, d); err != nil {
		r.abort(err)
	}
}

// writeEvents writes an event for each subscription that is due, and returns how many.
func writeEvents(events, subs []byte, waits []time.Duration, due time.Duration) (n uint32) {
	for i, d := range waits {
		if d > due {
			continue
		}
		sub, event := subs[i*subscriptionSize:], events[n*eventSize:][:eventSize]
		user, tag := [8]byte(sub), sub[8] // events may lie where subscriptions do
		clear(event)
		copy(event, user[:])
		event[10] = tag
		n++
	}
	return n
}
