package sessionlog

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// copying applies what was found to the entries of the same log, in order.
type copying struct {
	inserts []insert // those that are still to come
	drops   map[int][]int
}

func (f *Findings) copying() *copying { return &copying{f.inserts, f.drops} }

// before gives the events that stand before an entry.
func (c *copying) before(index int, each func(event []byte) error) error {
	for len(c.inserts) > 0 && c.inserts[0].before <= index {
		event := c.inserts[0].event
		c.inserts = c.inserts[1:]
		if err := each(event); err != nil {
			return err
		}
	}
	return nil
}

// event returns what stands in the place of an event: itself, or a tool_completed without the results that came twice, nil where
// no result is left of it.
func (c *copying) event(index int, event []byte) []byte {
	drop := c.drops[index]
	if drop == nil {
		return event
	}
	var s jsonscan.Scanner
	s.Reset(event)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "results" {
			s.Skip()
			continue
		}
		s.Peek()
		from := s.Offset()
		list, kept := without(s.Raw(), drop)
		if kept == 0 {
			return nil
		}
		return slices.Concat(event[:from], list, event[s.Offset():])
	}
	return event
}

// without returns a list without the elements of these indexes, and how many are left.
func without(list []byte, drop []int) (out []byte, kept int) {
	var s jsonscan.Scanner
	s.Reset(list)
	out = []byte{'['}
	n := 0
	for s.Begin('['); s.More(']'); n++ {
		raw := s.Raw()
		if slices.Contains(drop, n) {
			continue
		}
		if kept > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		kept++
	}
	return append(out, ']'), kept
}
