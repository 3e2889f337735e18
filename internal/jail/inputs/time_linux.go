package inputs

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// Clocks of clock_gettime that tell the wall time, and those that tell how long the machine has been up.
var (
	wallClocks = []uint32{unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE, unix.CLOCK_TAI}
	ownClocks  = append([]uint32{unix.CLOCK_PROCESS_CPUTIME_ID}, wallClocks...) // and how long a process had a processor
	tickClocks = []uint32{unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_COARSE, unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_BOOTTIME}
)

func (in *Answerer) now(c *notify.Call, p *process.Asker) int64 {
	return p.Source.Now(in.place(c, p))
}

func (in *Answerer) clock(c *notify.Call, p *process.Asker) {
	switch {
	case uint32(c.Args[0]) == unix.CLOCK_TAI:
		write(c, c.Args[1], in.now(c, p)+leapSeconds(p)*second, 1)
	case slices.Contains(wallClocks, uint32(c.Args[0])):
		write(c, c.Args[1], in.now(c, p), 1)
	case uint32(c.Args[0]) == unix.CLOCK_PROCESS_CPUTIME_ID:
		in.processorTime(c, p)
	case p.Ticks:
		write(c, c.Args[1], p.Source.Tick(in.place(c, p)), 1)
	default:
		c.GoOn()
	}
}

const (
	second      = 1e9 // ns
	microsecond = 1e3
)

// leapSeconds is by how many seconds the atomic time (CLOCK_TAI) is ahead of the wall time as a process sees it: it is told of that once.
func leapSeconds(p *process.Asker) int64 {
	if p.LeapSeconds == nil {
		now := binary.LittleEndian.AppendUint64(nil, uint64(kernelLeapSeconds()))
		if is := p.Source.Asked("leapseconds", "", now); len(is) == len(now) {
			now = is
		}
		leap := int64(binary.LittleEndian.Uint64(now))
		p.LeapSeconds = &leap
	}
	return *p.LeapSeconds
}

// kernelLeapSeconds is 0 where nobody told the kernel of any.
func kernelLeapSeconds() int64 {
	var tai, wall unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_TAI, &tai) // never fails, as the other
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall)
	return int64(time.Duration(tai.Nano()-wall.Nano()).Round(time.Second) / time.Second)
}

// write answers a call that has the time written at addr, as seconds and units of so many ns.
func write(c *notify.Call, addr uint64, now, unit int64) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], uint64(now/second))
	binary.NativeEndian.PutUint64(b[8:], uint64(now%second/unit))
	if inspect.WriteMemory(c.Task, addr, b[:]) != nil {
		c.Fail(unix.EFAULT)
		return
	}
	c.Fail(0)
}

func (in *Answerer) timeOfDay(c *notify.Call, p *process.Asker) {
	now := in.now(c, p)
	if zone := c.Args[1]; zone != 0 {
		if err := inspect.WriteMemory(c.Task, zone, make([]byte, 8)); err != nil {
			c.Fail(unix.EFAULT)
			return
		}
	}
	if c.Args[0] == 0 {
		c.Fail(0)
		return
	}
	write(c, c.Args[0], now, microsecond)
}

func (in *Answerer) time(c *notify.Call, p *process.Asker) {
	now := in.now(c, p)
	if addr := c.Args[0]; addr != 0 {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], uint64(now/second))
		if inspect.WriteMemory(c.Task, addr, b[:]) != nil {
			c.Fail(unix.EFAULT)
			return
		}
	}
	c.Return(now / second)
}
