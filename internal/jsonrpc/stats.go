package jsonrpc

import (
	"sync/atomic"
	"time"
)

// counters are what Stats reads.
type counters struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Int64
}

func (s *counters) in(o *Options, n int) {
	s.framesIn.Add(1)
	s.bytesIn.Add(int64(n))
	if o.Meter.Frame != nil {
		o.Meter.Frame(true, n)
	}
}

func (s *counters) out(o *Options, n int) {
	s.framesOut.Add(1)
	s.bytesOut.Add(int64(n))
	if o.Meter.Frame != nil {
		o.Meter.Frame(false, n)
	}
}

// Stats is a Conn at one moment.
type Stats struct {
	Running, Waiting   int // requests in service, and in line
	Calls              int // of ours that are unanswered
	Queued             int // bytes to be written
	FramesIn, BytesIn  int64
	FramesOut, ByteOut int64
}

// Stats returns what c is at now.
func (c *Conn) Stats() Stats {
	s := Stats{
		FramesIn: c.stats.framesIn.Load(), BytesIn: c.stats.bytesIn.Load(),
		FramesOut: c.stats.framesOut.Load(), ByteOut: c.stats.bytesOut.Load(),
	}
	c.mu.Lock()
	s.Running, s.Waiting, s.Calls = c.running+c.parked, c.waiting.len(), len(c.calls)
	c.mu.Unlock()
	c.out.mu.Lock()
	s.Queued = c.out.bytes
	c.out.mu.Unlock()
	return s
}

func (c *Conn) refused(why Refusal) {
	if c.o.Meter.Refused != nil {
		c.o.Meter.Refused(why)
	}
}

func (c *Conn) throttled(why Refusal, took time.Duration) {
	if c.o.Meter.Throttled != nil {
		c.o.Meter.Throttled(why, took)
	}
}
