package exchange

import "github.com/tapedeck-dev/tapedeck/tape"

// A heldRecord waits until it is known which lane it stands in.
type heldRecord struct {
	kind  tape.Kind
	raw   []tape.RawBytes
	entry *socketEntry // that it is said again; nil for none
}

// put puts a record on the tape, or has it wait. The caller holds mu, or is alone yet.
func (s *Socket) put(k tape.Kind, raw []tape.RawBytes) error {
	h := heldRecord{k, raw, s.giving}
	if s.choice != nil && !s.choice.made && len(s.held) < maxUndecided {
		s.held = append(s.held, h)
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	return s.write(&h)
}

// settle ends a choice, and puts on the tape what has waited for it. The caller holds mu.
func (s *Socket) settle() error {
	c := s.choice
	if c == nil {
		return nil
	}
	s.choice = nil
	c.decide()
	s.became = c.rec
	held := s.held
	s.held = nil
	for i := range held {
		if err := s.write(&held[i]); err != nil {
			return err
		}
	}
	return nil
}

// write writes a record in the lane of what the socket has become. What was said on another socket while recording says where it stands.
func (s *Socket) write(h *heldRecord) error {
	if s.became != nil {
		switch k := h.kind.(type) {
		case *tape.WSOpen:
			k.Lane = s.became.Lane
		case *tape.WSMessage:
			if h.entry != nil && h.entry.on != nil && h.entry.on != s.became.Socket {
				k.Extra = append(k.Extra, number(tape.ElsewhereKey, h.entry.seq))
			}
		}
	}
	return s.tap.rec.RecordRaw(h.kind, h.raw)
}
