package websock

import (
	"context"
	"time"
)

// schedule looks again after d whether the peer is there. It does nothing once the end has begun.
func (s *Stream) schedule(d time.Duration) {
	if s.o.PingEvery <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.pings = time.AfterFunc(d, s.ask)
	}
}

// ask pings a peer that has been silent and drops it when it stays so. It runs in a goroutine of its timer, for which abort
// waits.
func (s *Stream) ask() {
	s.mu.Lock()
	select {
	case <-s.done:
		s.mu.Unlock()
		return
	default:
		s.wg.Add(1)
	}
	s.mu.Unlock()
	defer s.wg.Done()
	if silent := s.wire.silent(); silent < s.o.PingEvery {
		s.schedule(s.o.PingEvery - silent)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.PongWithin)
	defer cancel()
	err := s.ws.Ping(ctx)
	if err != nil && s.wire.silent() >= s.o.PongWithin {
		_ = s.wire.Close()
		return
	}
	s.schedule(s.o.PingEvery)
}
