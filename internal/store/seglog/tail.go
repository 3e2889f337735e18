package seglog

import (
	"bytes"
	"errors"
	"fmt"
)

// A tail finds and judges the end of the last segment.
type tail struct {
	window
	name    string
	segment *segmentInfo
	at      int64       // behind the last whole block
	want    blockWanted // of a block there
	why     error       // it is none
	extent  int64       // behind the last byte that is not zero; set by judge
}

// find goes over all whole blocks.
func (t *tail) find() error {
	t.at, t.want = segmentHeader, blockWanted{t.segment.first, t.segment.crc}
	for t.at < t.limit {
		_, h, err := t.block(t.at, &t.segment.salt, t.want)
		var none *errNoBlock
		if errors.As(err, &none) {
			t.why = none.reason
			return nil
		}
		if err != nil {
			return err
		}
		t.at += h.size()
		t.want = blockWanted{h.end(), h.self}
	}
	return nil
}

// judge looks at what stands behind the last whole block: nothing (nil, nil), a torn block (why it is one, nil), or damage.
func (t *tail) judge(m mark) (torn, damage error) {
	behind, err := t.search()
	if err != nil {
		return nil, err
	}
	if t.extent <= t.at {
		t.why = errors.New("the file ends here")
	}
	switch {
	case m.next > t.want.first:
		return nil, t.damaged("%w; records before %d were acknowledged, %d is the last one here", t.why, m.next, t.want.first-1)
	case behind != 0:
		return nil, t.damaged("%w; but a whole block stands at byte %d", t.why, behind)
	case t.extent <= t.at:
		return nil, nil
	}
	if torn, err = t.hole(); torn != nil || err != nil {
		return torn, err
	}
	return nil, t.damaged("%w; and no part of it is missing, as in a torn write. To go on without it and what follows, "+
		"cut a copy of the file off here", t.why)
}

func (t *tail) damaged(format string, args ...any) error {
	return &DamageError{t.name, t.at, fmt.Errorf(format, args...).Error()}
}

// search goes over everything behind the last whole block, for its extent and for another whole block: it returns where one
// begins, or 0.
func (t *tail) search() (behind int64, err error) {
	t.extent = t.at
	for at := t.at; at < t.limit; {
		b, err := t.view(at, int(min(windowSize, t.limit-at)))
		if err != nil {
			return 0, err
		}
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			t.extent = at + int64(n)
		}
		next := at + int64(len(b))
		if next < t.limit {
			next -= blockHeader - 1 // one may begin in the last bytes
		}
		for _, i := range t.headers(b) {
			if whole, err := t.whole(at + i); whole || err != nil {
				return at + i, err
			}
		}
		at = next
	}
	return 0, nil
}

// headers returns where headers of blocks of this segment stand in b.
func (t *tail) headers(b []byte) []int64 {
	var found []int64
	for i := 0; ; i++ {
		n := bytes.Index(b[i:], blockMagic[:])
		if n < 0 || len(b)-i-n < blockHeader {
			return found
		}
		i += n
		if _, err := decodeBlock(b[i:], &t.segment.salt); err == nil {
			found = append(found, int64(i))
		}
	}
}

// whole says whether a block of this segment stands at a place.
func (t *tail) whole(at int64) (bool, error) {
	b, err := t.view(at, blockHeader)
	if err != nil {
		return false, err
	}
	h, err := decodeBlock(b, &t.segment.salt)
	if err != nil || h.size() > t.limit-at {
		return false, nil
	}
	if b, err = t.view(at, int(h.size())); err != nil {
		return false, err
	}
	return checkBlock(b, &h) == nil, nil
}

// hole says what is missing of the block behind the last whole one, or nil where nothing is.
func (t *tail) hole() (missing, err error) {
	n := int64(blockHeader)
	if t.extent-t.at < n {
		return errors.New("its header is not complete"), nil
	}
	b, err := t.view(t.at, int(n))
	if err != nil {
		return nil, err
	}
	if h, err := decodeBlock(b, &t.segment.salt); err == nil { // as long as it says
		n = h.size()
		if n > t.limit-t.at {
			return errors.New("the file ends within it"), nil
		}
		if t.extent-t.at < n {
			return errors.New("its end is missing"), nil
		}
		if b, err = t.view(t.at, int(n)); err != nil {
			return nil, err
		}
	}
	for begin := int64(0); begin < n; {
		end := min(n, (t.at+begin)/sector*sector+sector-t.at)
		if len(bytes.Trim(b[begin:end], "\x00")) == 0 {
			return fmt.Errorf("bytes %d to %d of it were never written", begin, end), nil
		}
		begin = end
	}
	return nil, nil
}
