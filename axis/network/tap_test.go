package network

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type testTap struct {
	*exchange.Tap
	t testing.TB
}

func newTestTap(t testing.TB) *testTap {
	return &testTap{&exchange.Tap{Store: cas.NewMemory()}, t}
}

func (t *testTap) book() *exchange.Book { return exchange.NewBook(t.Tap) }
func (t *testTap) blobs() cas.Store     { return t.Store }

func (t *testTap) exchanges() []*tape.Exchange {
	var out []*tape.Exchange
	for _, ex := range t.Done {
		out = append(out, &ex.Exchange)
	}
	return out
}
