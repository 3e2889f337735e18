package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxUnpriced is how many models without a price a Bill names.
const maxUnpriced = 10

// A Bill adds up what model calls used and cost. NewBill makes one; its fields are read only. It is not safe for concurrent
// use.
type Bill struct {
	Calls, Counted, Priced int // of them: with a usage, with a price
	Usage                  Usage
	USD                    float64  // of the calls with a price
	Unpriced               []string // models without a price, each once, ten at most
	Nameless               int      // calls without a price whose record names no model

	prices *Prices
}

// NewBill returns an empty bill at prices; nil are DefaultPrices.
func NewBill(prices *Prices) *Bill {
	if prices == nil {
		prices = DefaultPrices()
	}
	return &Bill{prices: prices}
}

// AsOf is the date of the prices.
func (b *Bill) AsOf() string { return b.prices.AsOf }

// Add counts k where it is a model call.
func (b *Bill) Add(k tape.Kind) {
	call, ok := k.(*tape.LLMCall)
	if !ok {
		return
	}
	u, ok := UsageOf(call)
	if !ok && call.Endpoint == responsesWarmUp { // which generated nothing
		return
	}
	b.Calls++
	if !ok {
		return
	}
	b.Counted++
	b.Usage = b.Usage.Add(u)
	if usd, ok := b.prices.CostOf(call); ok {
		b.Priced++
		b.USD += usd
		return
	}
	switch _, model := ModelOf(call); {
	case model == "":
		b.Nameless++
	case len(b.Unpriced) < maxUnpriced && !slices.Contains(b.Unpriced, model):
		b.Unpriced = append(b.Unpriced, model)
	}
}

// Whole returns what all calls cost together; ok is false where that of one is not known.
func (b *Bill) Whole() (usd float64, ok bool) { return b.USD, b.Priced == b.Calls }
