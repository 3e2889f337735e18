package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// match finds the recorded message that one of the program is, scrubbed, and returns why there is none; "" where there is. The caller
// holds the Socket's mu.
func (p *SocketPlay) match(m *SocketMessage, b []byte) (why string) {
	now, surface := saying{key: messageKey{opcode: opcodeName(m.Opcode)}}, []byte(nil)
	if m.Lost == "" {
		now, surface = sayingOf(p.book.classifier, p.sock.url, now.key.opcode, b)
	}
	p.hear(&now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	p.learnOpening()
	i := p.find(&now)
	if i < 0 {
		return p.nearest(now.key, surface)
	}
	p.names.learn(p.book.said(p.rec.Socket, p.entries[i]).ids, now.ids)
	p.came(i)
	return ""
}

// hear tells the choice of the socket, where there is one, what the program says. The caller holds the Socket's mu.
func (p *SocketPlay) hear(now *saying) {
	if c := p.sock.choice; c != nil && !c.made {
		c.hear(now, &p.names)
	}
}

// find is the place of a message that has not come yet: of equal ones the one with the same ids, then the first; -1 for none. The caller
// holds mu.
func (p *SocketPlay) find(now *saying) int {
	best, most := -1, 0
	for i := p.open; i < len(p.states); i++ {
		e := p.entries[i]
		if !e.asks() || p.states[i].came {
			continue
		}
		was := p.book.said(p.rec.Socket, e)
		if was.key != now.key {
			continue
		}
		like := p.names.likeness(was.ids, now.ids)
		if best < 0 || like > most {
			best, most = i, like
		}
		if most == len(now.ids) {
			break
		}
	}
	return best
}

// came notes that a message of the program is here. The caller holds mu.
func (p *SocketPlay) came(i int) {
	p.states[i].came = true
	for p.open < len(p.states) && (p.states[p.open].came || p.entries[p.open].from == FromServer) {
		p.open++
	}
	p.woken()
}

// whole reads a payload of the tape, however long.
func (b *Book) whole(p *tape.Payload) ([]byte, error) {
	switch {
	case p == nil:
		return nil, errors.New("it was not kept")
	case b.store == nil && !p.Inline:
		return nil, errors.New("no store")
	}
	return p.Bytes(b.store)
}

// nearest says what of the socket is most like a message that is not on it. The caller holds mu.
func (p *SocketPlay) nearest(key messageKey, surface []byte) string {
	var best *socketEntry
	var least []fidelity.Change
	tried := 0
	for i, e := range p.entries {
		if e.from != FromProgram || e.message == nil || p.states[i].came || tried == maxCandidates {
			continue
		}
		tried++
		was, err := p.book.payload(e.message.Payload)
		if err != nil {
			continue
		}
		_, was = sayingOf(p.book.classifier, p.sock.url, e.message.Opcode, was)
		changes := fidelity.DiffJSON(was, surface)
		if e.message.Opcode != key.opcode {
			changes = append(changes, change("opcode", e.message.Opcode, key.opcode))
		}
		if best == nil || len(changes) < len(least) {
			best, least = e, changes
		}
	}
	if best == nil {
		return fmt.Sprintf("the program sent nothing more on this socket while recording (%s)", nameOf(p.rec))
	}
	return fmt.Sprintf("nearest is record %d (lane %s), %s", best.seq, p.rec.Lane, describe(least))
}

// bind gives the turn that was asked for the place of one that was recorded here: its own, else that of the next one. The caller holds
// the Socket's mu.
func (p *SocketPlay) bind(asked *Recorded) {
	p.hear(turnSaying(asked.Key))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	place := -1
	for i, e := range p.entries {
		if e.turn == nil || e.part != asking || p.states[i].came {
			continue
		}
		if e.turn == asked {
			place = i
			break
		}
		if place < 0 {
			place = i
		}
	}
	if place < 0 {
		p.extra = append(p.extra, rest(asked, 0, 0)...)
		p.woken()
		return
	}
	e := p.entries[place]
	p.bound[e.turn] = asked
	if e.last && e.turn != asked { // nothing was answered then
		p.extra = append(p.extra, rest(asked, 0, e.ms)...)
	}
	p.came(place)
}

// given is the message of an entry, when it is due. It is on the tape then.
func (p *SocketPlay) given(ctx context.Context, s *step) (*SocketMessage, error) {
	if err := p.pace(ctx, s.after, s.ms); err != nil {
		return nil, err
	}
	m, err := p.recorded(s.entry, s.turn)
	if err != nil {
		p.book.Damage(cmp.Or(s.turn, s.of), err)
		return nil, fmt.Errorf("recorded message is damaged: %w", err)
	}
	if m.Opcode == TextMessage {
		p.mu.Lock()
		m.Payload = p.names.rename(p.book.classifier, m.Payload)
		p.mu.Unlock()
	}
	if p.opts.Reveal != nil && m.Opcode != RawBytes {
		m.Payload = p.opts.Reveal(m.Payload)
	}
	p.sock.mu.Lock()
	defer p.sock.mu.Unlock()
	if s.turn != nil && s.turn.ownTurn && s.entry.part == 0 {
		p.sock.own = s.turn
	}
	p.sock.giving = s.entry
	_, err = p.sock.message(FromServer, m)
	p.sock.giving = nil
	return m, err
}

// recorded reads the message of an entry.
func (p *SocketPlay) recorded(e *socketEntry, turn *Recorded) (*SocketMessage, error) {
	if turn == nil {
		b, err := p.book.whole(e.message.Payload)
		if err != nil {
			return nil, errors.Join(err, lostOf(e.message))
		}
		return &SocketMessage{
			Opcode: opcodeOf(e.message.Opcode), Payload: b, Cut: string(tape.FieldValue(e.message.Extra, cutKey)) == "true",
			Masked: string(tape.FieldValue(e.message.Extra, maskKey)) == "true",
		}, nil
	}
	b, err := p.turnBytes(turn)
	if err != nil {
		return nil, err
	}
	c := turn.Exchange.Stream[e.part]
	if c.Offset < 0 || c.Length < 0 || c.Length > int64(len(b))-c.Offset {
		return nil, errors.New("its chunks do not fit its bytes")
	}
	return &SocketMessage{Opcode: turn.opcode, Payload: bytes.TrimSuffix(b[c.Offset:c.Offset+c.Length], []byte("\n"))}, nil
}

// lostOf is why the payload of a message is not there; nil where the tape does not say.
func lostOf(k *tape.WSMessage) error {
	if why := textIn(k.Extra, lostKey); why != "" {
		return errors.New(why)
	}
	return nil
}

// turnBytes are the messages of a turn; of the last one that was asked for they are in memory.
func (p *SocketPlay) turnBytes(turn *Recorded) ([]byte, error) {
	if p.held == turn {
		return p.bytes, nil
	}
	b, err := p.book.whole(turn.Exchange.Response)
	if err == nil {
		p.held, p.bytes = turn, b
	}
	return b, err
}
