package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxUnpriced is how many models without a price are named.
const maxUnpriced = 10

// A bill adds up what the model calls among some records used and cost.
type bill struct {
	prices *llm.Prices

	calls, counted, priced int // of them: with a usage, with a price
	usage                  llm.Usage
	usd                    float64
	unpriced               []string // models, each once
	nameless               int      // calls without a price whose record names no model
}

// newBill reads the prices of a file; "" is the table that is built in.
func newBill(file string) (*bill, error) {
	if file == "" {
		return &bill{prices: llm.DefaultPrices()}, nil
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
	return &bill{prices: p}, nil
}

// add counts a record that is a model call.
func (b *bill) add(rec *tape.Record) {
	call, ok := rec.Kind.(*tape.LLMCall)
	if !ok {
		return
	}
	b.calls++
	u, ok := llm.UsageOf(call)
	if !ok {
		return
	}
	b.counted++
	b.usage = b.usage.Add(u)
	if usd, ok := b.prices.CostOf(call); ok {
		b.priced++
		b.usd += usd
		return
	}
	switch _, model := llm.ModelOf(call); {
	case model == "":
		b.nameless++
	case len(b.unpriced) < maxUnpriced && !slices.Contains(b.unpriced, model):
		b.unpriced = append(b.unpriced, model)
	}
}

// write is the line at the end of a timeline; nothing where no call has said what it used.
func (b *bill) write(w io.Writer) error {
	if b.counted == 0 {
		return nil
	}
	line := fmt.Sprintf("%s: %d tokens in", plural(b.calls, "LLM call", "LLM calls"), b.usage.InputTokens)
	if b.usage.CacheReadTokens > 0 {
		line += fmt.Sprintf(" (%d from a cache)", b.usage.CacheReadTokens)
	}
	line += fmt.Sprintf(", %d out", b.usage.OutputTokens)
	if b.usage.ReasoningTokens > 0 {
		line += fmt.Sprintf(" (%d reasoning)", b.usage.ReasoningTokens)
	}
	if n := b.calls - b.counted; n > 0 {
		line += fmt.Sprintf("; %d did not say", n)
	}
	if cost := b.cost(); cost != "" {
		line += "; " + cost
	}
	_, err := visible.Fprintln(w, line)
	return err
}

// cost says what the calls cost, and whose price is not known; "" where no call has a price or a model's name.
func (b *bill) cost() string {
	unpriced := strings.Join(b.unpriced, ", ")
	if b.priced == 0 {
		if unpriced == "" {
			return ""
		}
		return "no price known for " + unpriced
	}
	line := fmt.Sprintf("$%s at list prices of %s", dollars(b.usd), b.prices.AsOf)
	switch {
	case unpriced != "":
		line += ", but for " + unpriced
	case b.nameless > 0:
		line += ", but for " + plural(b.nameless, "call that names no model", "calls that name no model")
	}
	return line
}

// dollars has four decimals, and of less than a cent two digits that say something.
func dollars(usd float64) string {
	if usd < 0.01 {
		return strconv.FormatFloat(usd, 'g', 2, 64)
	}
	return strconv.FormatFloat(usd, 'f', 4, 64)
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

func (b *bill) json() *billJSON {
	out := &billJSON{
		Calls: b.calls, Counted: b.counted, InputTokens: b.usage.InputTokens, OutputTokens: b.usage.OutputTokens,
		CacheReadTokens: b.usage.CacheReadTokens, CacheWriteTokens: b.usage.CacheWriteTokens,
		ReasoningTokens: b.usage.ReasoningTokens, PricesAsOf: b.prices.AsOf, Unpriced: append([]string{}, b.unpriced...),
	}
	if b.priced == b.calls {
		out.CostUSD = &b.usd
	}
	return out
}
