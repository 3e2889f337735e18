package fidelity

import "github.com/tapedeck-dev/tapedeck/tape"

// A program that opens several sockets alike hears what the servers say first before it says which socket is which. What a replay said on
// another one than the recording had it is compared with what it is, not with what stands in its place.

// elsewhere counts what was heard on another socket.
type elsewhere struct {
	messages map[uint64]*entry // of servers, on the side of the recording, by seq; nil before they are looked for
	heard    int
}

// heardElsewhere is the pair of a message of a server that a replay said on another socket; p itself for any other.
func (c *laneCompare) heardElsewhere(p pair) pair {
	k, ok := p.b.rec.Kind.(*tape.WSMessage)
	if !ok || k.Direction != received {
		return p
	}
	seq, ok := tape.ElsewhereOf(k)
	if !ok {
		return p
	}
	if c.elsewhere.messages == nil {
		c.elsewhere.messages = c.heard()
	}
	was := c.elsewhere.messages[seq]
	if was == nil || was.rec == p.a.rec {
		return p
	}
	delete(c.elsewhere.messages, seq) // each was said once
	if was.id != p.a.id {             // else it is all the same
		c.elsewhere.heard++
	}
	p.a = was
	return p
}

// received is the direction of what a server says.
const received = "received"

// heard are the recorded messages of servers, by seq.
func (c *laneCompare) heard() map[uint64]*entry {
	all := make(map[uint64]*entry)
	es := c.sides[Recorded].entries
	for i := range es {
		if es[i].rec == nil {
			continue
		}
		if k, ok := es[i].rec.Kind.(*tape.WSMessage); ok && k.Direction == received {
			all[es[i].rec.Seq] = &es[i]
		}
	}
	return all
}

// note says how much was heard elsewhere.
func (e *elsewhere) note(c *laneCompare) {
	if e.heard > 0 {
		c.note("%s of servers came on another of several WebSockets that were opened alike: which was which the program had not said",
			counted(e.heard, "message"))
	}
}
