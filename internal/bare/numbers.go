package bare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// placeholderShape is package scrub's placeholder: td_<rule>_<12 hex>. Of several readings the shortest rule is the one.
var placeholderShape = lazyregexp.New(`td_([0-9a-z_]{1,40}?)_([0-9a-f]{12})`)

// maxPlaceholder is the length in bytes of the longest placeholder.
const maxPlaceholder = len("td_") + 40 + len("_") + 12

// Numbers gives the placeholders of one recording numbers in place of their hex digits, counted by the first appearance of
// each secret: td_authorization_000000000001. So a tape holds nothing that was computed from a secret, and two developers
// with different secrets write the same tape. A number is as long as what it stands for.
type Numbers struct {
	rules map[string]int  // those that this recording made; others came with the traffic and are left as they are
	given map[string]int  // by hex digits
	count int             // numbers given
	stay  map[string]bool // numbers that stay as they stand; nil for none
	again bool            // every number stays
}

// NewNumbers returns the numbers of a recording whose scrubber counted these rules (scrub.Scrubber.Counts).
func NewNumbers(rules map[string]int) *Numbers {
	return &Numbers{rules: rules, given: make(map[string]int)}
}

// Twice has what was numbered stay as it is when it comes again. With all, so does what is numbered and was not by n, and counts as
// if it had been: a program that is answered from a tape says again what it holds.
func (n *Numbers) Twice(all bool) { n.stay, n.again = make(map[string]bool), all }

// Knows says what the scrubber has counted since.
func (n *Numbers) Knows(rules map[string]int) { n.rules = rules }

// Record numbers everything in r, whose payloads are read from store; those that change are put there too.
func (n *Numbers) Record(r *tape.Record, store cas.Store) error {
	ex := tape.ExchangeOf(r.Kind)
	ex.URL = n.text(ex.URL)
	for i := range ex.RequestHeaders {
		ex.RequestHeaders[i].Value = n.text(ex.RequestHeaders[i].Value)
	}
	if err := n.payload(ex.RequestPayload, store); err != nil {
		return err
	}
	for i := range ex.ResponseHeaders {
		ex.ResponseHeaders[i].Value = n.text(ex.ResponseHeaders[i].Value)
	}
	if err := n.payload(ex.Response, store); err != nil {
		return err
	}
	ex.Error = n.text(ex.Error)
	extra := *tape.Extras(r.Kind)
	for i := range extra {
		extra[i].Value = []byte(n.text(string(extra[i].Value)))
	}
	for i := range r.Raw {
		r.Raw[i].Bytes = []byte(n.text(string(r.Raw[i].Bytes)))
	}
	return nil
}

// Bytes returns b with its placeholders numbered; b itself where it holds none. It never writes to b.
func (n *Numbers) Bytes(b []byte) []byte {
	if !bytes.Contains(b, []byte("td_")) {
		return b
	}
	out := bytes.Clone(b)
	if n.replace(out, len(out)) == 0 {
		return b
	}
	return out
}

func (n *Numbers) text(s string) string {
	b := []byte(s)
	if n.replace(b, len(b)) == 0 {
		return s
	}
	return string(b)
}

func (n *Numbers) payload(p *tape.Payload, store cas.Store) error {
	switch {
	case p == nil:
		return nil
	case p.Inline:
		p.Text = n.text(p.Text)
		p.Hash = cas.Sum([]byte(p.Text))
		return nil
	}
	r, err := store.Open(p.Hash)
	if err != nil {
		return err
	}
	defer r.Close()
	d, _, err := store.PutReader(&numbered{Numbers: n, r: r})
	p.Hash = d
	return err
}

// replace numbers the placeholders of b that begin before limit, in place, and returns where the last one ends.
func (n *Numbers) replace(b []byte, limit int) (end int) {
	for _, m := range placeholderShape.FindAllSubmatchIndex(b, -1) {
		if m[0] >= limit {
			break
		}
		digits := b[m[4]:m[5]]
		if n.stays(digits) {
			end = m[1]
			continue
		}
		if !n.made(string(b[m[2]:m[3]])) {
			continue
		}
		number := n.given[string(digits)]
		if number == 0 {
			n.count++
			number = n.count
			n.given[string(digits)] = number
		}
		copy(digits, fmt.Sprintf("%012d", number))
		if n.stay != nil {
			n.stay[string(digits)] = true
		}
		end = m[1]
	}
	return end
}

// stays reports whether the digits of a placeholder are a number already. Six digits hold every number; those of a digest do not
// begin with six zeros.
func (n *Numbers) stays(digits []byte) bool {
	switch {
	case n.stay == nil || !strings.HasPrefix(string(digits), "000000") || strings.Trim(string(digits), "0123456789") != "":
		return false
	case n.stay[string(digits)]:
		return true
	}
	if n.again {
		n.stay[string(digits)] = true
		n.count++
	}
	return n.again
}

// made reports whether this recording made a placeholder of that rule. Behind the rule, which may then be cut short, may stand
// the form in which the secret stood: an underscore, a z, and no further underscore.
func (n *Numbers) made(rule string) bool {
	if n.rules[rule] > 0 {
		return true
	}
	i := strings.LastIndexByte(rule, '_')
	if i < 1 || !strings.HasPrefix(rule[i:], "_z") {
		return false
	}
	for whole := range n.rules {
		if strings.HasPrefix(whole, rule[:i]) {
			return true
		}
	}
	return false
}

// numbered reads a stream with its placeholders numbered.
type numbered struct {
	*Numbers
	r     io.Reader
	buf   []byte
	ready int // bytes of buf that may be given out
	err   error
}

func (s *numbered) Read(p []byte) (int, error) {
	for s.ready == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.buf[:s.ready])
	s.buf, s.ready = s.buf[n:], s.ready-n
	return n, nil
}

// fill reads on. What could be the beginning of a placeholder waits for what follows it.
func (s *numbered) fill() {
	next := make([]byte, len(s.buf)+32<<10)
	n, err := io.ReadFull(s.r, next[copy(next, s.buf):])
	s.buf = next[:len(s.buf)+n]
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	s.err = err
	limit := len(s.buf)
	if err == nil {
		limit -= maxPlaceholder
	}
	s.ready = max(s.replace(s.buf, limit), limit)
}
