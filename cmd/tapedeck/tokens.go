package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// newBill reads the prices of a file; "" is the table that is built in.
func newBill(file string) (*llm.Bill, error) {
	if file == "" {
		return llm.NewBill(nil), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w", err)
	}
	defer f.Close()
	p, err := llm.LoadPrices(f)
	if err != nil {
		return nil, fmt.Errorf("--prices %s: %w", file, err)
	}
	return llm.NewBill(p), nil
}

// writeBill is the line at the end of a timeline; nothing where no call has said what it used.
func writeBill(w io.Writer, b *llm.Bill) error {
	if b.Counted == 0 {
		return nil
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
	_, err := visible.Fprintln(w, line)
	return err
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
	line := fmt.Sprintf("%s at list prices of %s", dollars(b.USD), b.AsOf())
	switch {
	case unpriced != "":
		line += ", but for " + unpriced
	case b.Nameless > 0:
		line += ", but for " + plural(b.Nameless, "call that names no model", "calls that name no model")
	}
	return line
}

// dollars has four decimals; less than the last of them is said to be less.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	}
	return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
}

// A billJSON is a bill in --json. Cost is null unless every call that used something has a price.
type billJSON struct {
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

func newBillJSON(b *llm.Bill) *billJSON {
	out := &billJSON{
		Calls: b.Calls, Counted: b.Counted, InputTokens: b.Usage.InputTokens, OutputTokens: b.Usage.OutputTokens,
		CacheReadTokens: b.Usage.CacheReadTokens, CacheWriteTokens: b.Usage.CacheWriteTokens,
		ReasoningTokens: b.Usage.ReasoningTokens, PricesAsOf: b.AsOf(), Unpriced: append([]string{}, b.Unpriced...),
	}
	if usd, ok := b.Whole(); ok {
		out.CostUSD = &usd
	}
	return out
}
