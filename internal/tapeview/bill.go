package tapeview

import (
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// Bill is the line at the end of a timeline; "" where no call has said what it used.
func Bill(b *llm.Bill) string {
	if b.Counted == 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %d tokens in", plural(b.Calls, "LLM call", "LLM calls"), b.Usage.InputTokens)
	if b.Usage.CacheReadTokens > 0 {
		line += fmt.Sprintf(" (%d from a cache)", b.Usage.CacheReadTokens)
	}
	line += fmt.Sprintf(", %d out", b.Usage.OutputTokens)
	if b.Usage.ReasoningTokens > 0 {
		line += fmt.Sprintf(" (%d reasoning)", b.Usage.ReasoningTokens)
	}
	if n := b.Calls - b.Counted; n > 0 {
		line += fmt.Sprintf("; %d did not say", n)
	}
	if cost := costOf(b); cost != "" {
		line += "; " + cost
	}
	return line
}

// costOf says what the calls cost, and whose price is not known; "" where no call has a price or a model's name.
func costOf(b *llm.Bill) string {
	unpriced := strings.Join(b.Unpriced, ", ")
	if b.Priced == 0 {
		if unpriced == "" {
			return ""
		}
		return "no price known for " + unpriced
	}
	line := fmt.Sprintf("%s at list prices of %s", recording.Dollars(b.USD), b.AsOf())
	switch {
	case unpriced != "":
		line += ", but for " + unpriced
	case b.Nameless > 0:
		line += ", but for " + plural(b.Nameless, "call that names no model", "calls that name no model")
	}
	return line
}

// A BillJSON is a bill in --json. Cost is null unless every call that used something has a price.
type BillJSON struct {
	Calls            int      `json:"calls"`
	Counted          int      `json:"counted"`
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	CacheReadTokens  int64    `json:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"`
	ReasoningTokens  int64    `json:"reasoning_tokens"`
	CostUSD          *float64 `json:"cost_usd"`
	PricesAsOf       string   `json:"prices_as_of"`
	Unpriced         []string `json:"unpriced"`
}

// NewBillJSON is b for --json.
func NewBillJSON(b *llm.Bill) *BillJSON {
	out := &BillJSON{
		Calls: b.Calls, Counted: b.Counted, InputTokens: b.Usage.InputTokens, OutputTokens: b.Usage.OutputTokens,
		CacheReadTokens: b.Usage.CacheReadTokens, CacheWriteTokens: b.Usage.CacheWriteTokens,
		ReasoningTokens: b.Usage.ReasoningTokens, PricesAsOf: b.AsOf(), Unpriced: append([]string{}, b.Unpriced...),
	}
	if usd, ok := b.Whole(); ok {
		out.CostUSD = &usd
	}
	return out
}
