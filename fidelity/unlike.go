package fidelity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxUnlike bounds the bytes of requests that are read to find what differs in them beside what compares.
const maxUnlike = 256 << 20

// A MaskedFact is what a mask took out of a request before it was compared.
type MaskedFact struct {
	Mask string
	Text string // as it stood
}

// unlikes are the masks that hid a difference between requests that compare as equal, by name.
type unlikes map[string]*unlike

// unlike is what one mask hid.
type unlike struct {
	requests int
	was, now string // the first of them
}

// unlikeFacts finds what masks hid in a pair of requests. A green verdict must not hide that "in 5 seconds" became "in 50".
func (c *laneCompare) unlikeFacts(p pair) {
	a, b := tape.ExchangeOf(p.a.rec.Kind), tape.ExchangeOf(p.b.rec.Kind)
	if c.o.Facts == nil || a == nil || b == nil || a.RequestDigest != b.RequestDigest || sameRequest(a, b) {
		return
	}
	was, now := c.facts(a, Recorded), c.facts(b, Replay)
	if len(was) != len(now) {
		return // of what differs beside, nothing stands in the same place
	}
	hidden := make(map[string]bool) // in this pair
	for i := range was {
		name := was[i].Mask
		if was[i] == now[i] || name != now[i].Mask {
			continue
		}
		if c.unlikes == nil {
			c.unlikes = make(unlikes)
		}
		if c.unlikes[name] == nil {
			c.unlikes[name] = &unlike{was: was[i].Text, now: now[i].Text}
		}
		if !hidden[name] {
			hidden[name] = true
			c.unlikes[name].requests++
		}
	}
}

func sameRequest(a, b *tape.Exchange) bool {
	return a.URL == b.URL && a.RequestPayload.Same(b.RequestPayload)
}

// facts returns what masks take out of a request; nothing where its body cannot be had, or too much was read already.
func (c *laneCompare) facts(ex *tape.Exchange, s Side) []MaskedFact {
	var body []byte
	if p := ex.RequestPayload; p != nil {
		if c.unlikeRead += p.Len; c.unlikeRead > maxUnlike {
			return nil
		}
		before := c.read
		var err error
		body, err = c.bytes(p, s)
		c.read = before // which is what explaining may read
		if err != nil {
			return nil
		}
	}
	return c.o.Facts(ex, body)
}

// note says what the masks hid.
func (u unlikes) note(c *laneCompare) {
	for _, name := range slices.Sorted(maps.Keys(u)) {
		hid := u[name]
		requests := fmt.Sprintf("%d requests", hid.requests)
		if hid.requests == 1 {
			requests = "1 request"
		}
		c.note("the mask %s hides a difference in %s%s", name, requests, c.report.sides.versus(hid.was, hid.now))
	}
}
