package exchange

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// inMemory is the spool of a Tap whose recorder is to see every payload whole (TapOptions.InMemory).
type inMemory struct{ bytes.Buffer }

func (m *inMemory) payload(rec *tape.Recorder) (*tape.Payload, error) { return rec.Payload(m.Bytes()) }
func (m *inMemory) close() error                                      { return nil }
func (m *inMemory) remove() error                                     { return nil }

// discarded is a store that keeps nothing.
type discarded struct{ cas.Store }

// Put implements cas.Store.
func (discarded) Put(b []byte) (cas.Digest, error) { return cas.Sum(b), nil }
