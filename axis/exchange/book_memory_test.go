package exchange

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestTakeRemembersNoUnknownKey sees that a program that asks in a loop for what is not on the tape costs no memory.
func TestTakeRemembersNoUnknownKey(t *testing.T) {
	b, err := NewBook(func(func(*tape.Record, error) bool) {}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range byte(100) {
		if _, ok := b.Take(Key{Request: cas.Sum([]byte{i})}); ok {
			t.Fatal("an empty tape answers")
		}
	}
	if len(b.queues) != 0 || len(b.log) != 0 {
		t.Errorf("%d queues, %d log lines", len(b.queues), len(b.log))
	}
}
