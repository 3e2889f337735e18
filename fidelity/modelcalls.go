package fidelity

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxAnswers bounds, in bytes, all answers of models of one comparison that are compared by what they say, where their hashes differ.
const maxAnswers = 256 << 20

// AnswerIDs is the mask under which answers that differ in nothing but what a provider makes up anew are counted.
const AnswerIDs = "answer-id"

// modelCalls compares calls of models whose bytes differ.
type modelCalls struct {
	*comparison
	compared int64             // bytes that were read to compare
	orders   map[string]*order // results of calls that came in another order, by lane
}

// answersAlike reports whether two answers of a model say the same: what is left once the ids are numbered that a provider
// makes up for every answer. Two live runs of a program that did the same differ in those alone.
func (c *modelCalls) answersAlike(a, b *tape.Exchange) bool {
	if c.o.AnswerSurface == nil || c.compared > maxAnswers {
		return false
	}
	was, now := c.answerSurface(a, Recorded), c.answerSurface(b, Replay)
	if was == nil || now == nil || !bytes.Equal(was, now) {
		return false
	}
	c.report.Masked[AnswerIDs]++
	return true
}

// answerSurface returns what compares of an answer; nil where it is too long, or cannot be had.
func (c *modelCalls) answerSurface(ex *tape.Exchange, s Side) []byte {
	if ex.Response == nil || ex.Response.Len > maxAnswer {
		return nil
	}
	body, err := c.readFor(&c.compared, ex.Response, s)
	if err != nil {
		return nil
	}
	return c.o.AnswerSurface(ex, body)
}

// An order is requests of a lane that hold results of calls in another order.
type order struct {
	first *tape.Exchange // as recorded
	count int
}

// maxOrdered bounds, in bytes, a request that is looked into for the order of its results.
const maxOrdered = 16 << 20

// resultsReordered reports whether two calls of a model differ in nothing but the order of the results of calls of one turn, which a
// program made side by side and told as they came. It is noted then.
func (c *modelCalls) resultsReordered(a, b *tape.Exchange) bool {
	if c.o.InCallOrder == nil || c.o.Request == nil || c.mode == ByteIdentical || c.compared > maxAnswers {
		return false
	}
	was, now := c.inCallOrder(a, Recorded), c.inCallOrder(b, Replay)
	if was == nil || now == nil || !bytes.Equal(was, now) {
		return false
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
func (c *modelCalls) inCallOrder(ex *tape.Exchange, s Side) []byte {
	if ex.RequestPayload == nil || ex.RequestPayload.Len > maxOrdered {
		return nil
	}
	body, err := c.readFor(&c.compared, ex.RequestPayload, s)
	if err != nil {
		return nil
	}
	sorted := c.o.InCallOrder(ex, body)
	if sorted == nil {
		return nil
	}
	plain := *ex
	plain.RequestHeaders = slices.DeleteFunc(slices.Clone(ex.RequestHeaders), func(f tape.HeaderField) bool {
		return strings.EqualFold(f.Name, "Content-Encoding")
	})
	surface, params := c.o.Request(&plain, sorted)
	return slices.Concat(surface, params)
}

// tell says where results came in another order.
func (c *modelCalls) tell() {
	for _, lane := range slices.Sorted(maps.Keys(c.orders)) {
		o := c.orders[lane]
		c.note("lane %s: results of calls that one turn made side by side came in another order, which does not gate "+
			"(%s, from arrival %d on)", lane, counted(o.count, "request"), o.first.Arrival)
	}
}
