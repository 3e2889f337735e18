package bare

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// placeholderShape is package scrub's placeholder: td_<rule>_<12 hex>. Of several readings the shortest rule is the one.
var placeholderShape = regexp.MustCompile(`td_([0-9a-z_]{1,40}?)_([0-9a-f]{12})`)

// maxPlaceholder is the length in bytes of the longest placeholder.
const maxPlaceholder = len("td_") + 40 + len("_") + 12

// Numbers gives the placeholders of one recording numbers in place of their hex digits, counted by the first appearance of
// each secret: td_authorization_000000000001. So a tape holds nothing that was computed from a secret, and two developers
// with different secrets write the same tape. A number is as long as what it stands for.
type Numbers struct {
	rules map[string]int // those that this recording made; others came with the traffic and are left as they are
	given map[string]int // by hex digits
}

// NewNumbers returns the numbers of a recording whose scrubber counted these rules (scrub.Scrubber.Counts).
func NewNumbers(rules map[string]int) *Numbers {
	return &Numbers{rules: rules, given: make(map[string]int)}
}

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

func (n *Numbers) text(s string) string {
	b := []byte(s)
	if n.replace(b, len(b)) == 0 {
		return s
	}
	return string(b)
}

// A Changer is a store in memory whose blobs may be changed in place: do reports whether it changed what it was given, and the
// blob has the returned digest then.
type Changer interface {
	Change(d cas.Digest, do func(b []byte) bool) (cas.Digest, error)
}

// payload numbers the bytes of a payload.
func (n *Numbers) payload(p *tape.Payload, store cas.Store) error {
	switch {
	case p == nil:
		return nil
	case p.Inline:
		p.Text = n.text(p.Text)
		p.Hash = cas.Sum([]byte(p.Text))
		return nil
	}
	if c, ok := store.(Changer); ok {
		d, err := c.Change(p.Hash, func(b []byte) bool { return n.replace(b, len(b)) > 0 })
		p.Hash = d
		return err
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
		if !n.made(string(b[m[2]:m[3]])) {
			continue
		}
		digits := b[m[4]:m[5]]
		number := n.given[string(digits)]
		if number == 0 {
			number = len(n.given) + 1
			n.given[string(digits)] = number
		}
		copy(digits, fmt.Sprintf("%012d", number))
		end = m[1]
	}
	return end
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
