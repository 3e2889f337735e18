package fidelity

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bounds of the answers of models that are compared by what they say, where their hashes differ.
const (
	maxAnswer  = 8 << 20   // bytes of one answer; of a longer one the hash alone counts
	maxAnswers = 256 << 20 // bytes of all answers of one comparison
)

// AnswerIDs is the mask under which answers that differ in nothing but what a provider makes up anew are counted.
const AnswerIDs = "answer-id"

// answersAlike reports whether two answers of a model say the same: what is left once the ids are numbered that a provider
// makes up for every answer. Two live runs of a program that did the same differ in those alone.
func (c *laneCompare) answersAlike(a, b *tape.Exchange) bool {
	if c.o.AnswerSurface == nil || c.compared > maxAnswers {
		return false
	}
	was, now := c.answerSurface(a, Recorded), c.answerSurface(b, Replay)
	if was == nil || now == nil || !bytes.Equal(was, now) {
		return false
	}
	if c.report.Masked == nil {
		c.report.Masked = make(map[string]int)
	}
	c.report.Masked[AnswerIDs]++
	return true
}

// answerSurface returns what compares of an answer; nil where it is too long, or cannot be had.
func (c *laneCompare) answerSurface(ex *tape.Exchange, s Side) []byte {
	if ex.Response == nil || ex.Response.Len > maxAnswer {
		return nil
	}
	before := c.read
	body, err := c.bytes(ex.Response, s)
	c.compared += c.read - before
	c.read = before // which is what explaining may read
	if err != nil {
		return nil
	}
	return c.o.AnswerSurface(ex, body)
}
