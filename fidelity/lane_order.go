package fidelity

import (
	"bytes"
	"maps"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// An order is requests of a lane that hold results of calls in another order.
type order struct {
	first *tape.Exchange // as recorded
	count int
}

// maxOrdered bounds, in bytes, a request that is looked into for the order of its results.
const maxOrdered = 16 << 20

// resultsReordered reports whether two calls of a model differ in nothing but the order of the results of calls of one turn, which a
// program made side by side and told as they came. It is noted then.
func (c *laneCompare) resultsReordered(a, b *tape.Exchange) bool {
	is, known := c.reordered[b]
	if !known {
		if is = c.orderResults(a, b); c.reordered == nil {
			c.reordered = make(map[*tape.Exchange]bool)
		}
		c.reordered[b] = is
	}
	return is
}

func (c *laneCompare) orderResults(a, b *tape.Exchange) bool {
	if c.o.InCallOrder == nil || c.o.Request == nil || c.mode == ByteIdentical || c.compared > maxAnswers {
		return false
	}
	was, now := c.inCallOrder(a, Recorded), c.inCallOrder(b, Replay)
	if was == nil || now == nil || !bytes.Equal(was, now) {
		return false
	}
	if c.orders == nil {
		c.orders = make(map[string]*order)
	}
	o := c.orders[a.Lane]
	if o == nil {
		o = &order{first: a}
		c.orders[a.Lane] = o
	}
	o.count++
	return true
}

// inCallOrder is what compares of a call of a model whose results were put into the order of their calls; nil where there are none to
// order, or it cannot be had.
func (c *laneCompare) inCallOrder(ex *tape.Exchange, s Side) []byte {
	if ex.RequestPayload == nil || ex.RequestPayload.Len > maxOrdered {
		return nil
	}
	before := c.read
	body, err := c.bytes(ex.RequestPayload, s)
	c.compared += c.read - before
	if c.read = before; err != nil { // which is what explaining may read
		return nil
	}
	sorted := c.o.InCallOrder(ex, body)
	if sorted == nil {
		return nil
	}
	plain := *ex
	plain.RequestHeaders = slices.DeleteFunc(slices.Clone(ex.RequestHeaders), isEncoding)
	surface, params := c.o.Request(&plain, sorted)
	return slices.Concat(surface, params)
}

// noteOrders says where results came in another order.
func (c *laneCompare) noteOrders() {
	for _, lane := range slices.Sorted(maps.Keys(c.orders)) {
		o := c.orders[lane]
		c.note("lane %s: results of calls that one turn made side by side came in another order, which does not gate (%s, from arrival %d on)",
			lane, counted(o.count, "request"), o.first.Arrival)
	}
}

// isEncoding reports whether a header says how the body was encoded.
func isEncoding(f tape.HeaderField) bool {
	return http.CanonicalHeaderKey(f.Name) == "Content-Encoding"
}
