package recordlog

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Entry reads entry n. Whether it is what the checkpoint stands for, Prove and Verify tell.
func (l *Log) Entry(n int64) (*Entry, error) {
	b, err := l.raw(n)
	if err != nil {
		return nil, err
	}
	return ParseEntry(b)
}

func (l *Log) raw(n int64) ([]byte, error) {
	if n < 0 || n >= l.Head.Tree.N {
		return nil, fmt.Errorf("entry %d: the log has %d", n, l.Head.Tree.N)
	}
	list, err := l.bundle(n/width, l.bundleWidth(n/width))
	if err != nil {
		return nil, err
	}
	return list[n%width], nil
}

// bundleWidth is how many entries bundle n has.
func (l *Log) bundleWidth(n int64) int { return int(min(width, l.Head.Tree.N-n*width)) }

// all reads the bytes of every entry, in order. The error ends it.
func (l *Log) all() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for n := int64(0); n*width < l.Head.Tree.N; n++ {
			list, err := l.bundle(n, l.bundleWidth(n))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Find returns the newest entry of the recording id, and its number; e is nil where the log has none.
func (l *Log) Find(id string) (n int64, e *Entry, err error) {
	if n, e, err = l.newest(id); e != nil || err != nil {
		return n, e, err
	}
	return l.search(id)
}

// newest is Find by the index alone.
func (l *Log) newest(id string) (n int64, e *Entry, err error) {
	known, err := l.indexed(id)
	for _, n := range slices.Backward(known) {
		if e, err := l.Entry(n); err == nil && e.ID == id {
			return n, e, nil
		}
	}
	return -1, nil, err
}

// search is Find without the index.
func (l *Log) search(id string) (at int64, e *Entry, err error) {
	quoted := canonjson.AppendString(nil, id)
	n, at := int64(-1), int64(-1)
	for b, err := range l.all() {
		if err != nil {
			return -1, nil, err
		}
		n++
		if !bytes.Contains(b, quoted) {
			continue
		}
		if f, err := ParseEntry(b); err == nil && f.ID == id {
			at, e = n, f
		}
	}
	return at, e, nil
}
