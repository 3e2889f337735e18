package fidelity

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxExplained is the longest payload, in bytes, that is read to explain a divergence.
const maxExplained = 16 << 20

// cause shows how the bytes behind two hashes differ; empty for a field that has none.
func (c *laneCompare) cause(f *finding) string {
	if f.was == nil || f.now == nil {
		return ""
	}
	was, err := c.bytes(f.was, Recorded)
	if err == nil {
		var now []byte
		if now, err = c.bytes(f.now, Replay); err == nil {
			return Summary(diffMasked(was, now, c.o.MaskArg), causeChanges)
		}
	}
	return fmt.Sprintf("what differs cannot be shown: %v", err)
}

// bytes returns what a payload holds.
func (c *laneCompare) bytes(p *tape.Payload, s Side) ([]byte, error) {
	switch {
	case p.Inline:
		return []byte(p.Text), nil
	case p.Len > maxExplained:
		return nil, fmt.Errorf("%s: %s is %d bytes long, more than %d", s, p.Hash.Short(), p.Len, maxExplained)
	case c.o.Payload == nil:
		return nil, fmt.Errorf("%s: %s stands in a store that was not given", s, p.Hash.Short())
	}
	b, err := c.o.Payload(p, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return b, nil
}

// diffMasked is DiffJSON without the changes that masking takes away. Where none is left it returns all.
func diffMasked(a, b []byte, mask func(string) string) []Change {
	_, errA := decodeJSON(a)
	_, errB := decodeJSON(b)
	if (errA != nil || errB != nil) && utf8.Valid(a) && utf8.Valid(b) {
		same := func(x, y string) bool { return x == y || mask(x) == mask(y) }
		if c, ok := firstLine(string(a), string(b), same); ok {
			return []Change{c}
		}
	}
	all := DiffJSON(a, b)
	left := slices.DeleteFunc(slices.Clone(all), func(c Change) bool {
		return c.Op == Changed && mask(c.Was) == mask(c.Now)
	})
	if len(left) == 0 {
		return all
	}
	return left
}
