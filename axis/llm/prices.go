package llm

import (
	_ "embed" // of the default table
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed prices.json
var defaultPrices string

// maxPrices bounds, in bytes, a table that is loaded.
const maxPrices = 8 << 20

// Prices is a table of list prices, as JSON:
//
//	{"as_of": "2026-11-21",
//	 "sources": ["https://…, read 2026-11-05"],
//	 "notes": ["…"],
//	 "prices": [
//	  {"provider": "anthropic", "models": ["claude-opus-5", "claude-opus-4-8"], "input": 5, "output": 25,
//	   "cache_read": 0.5, "cache_write": 6.25, "cache_write_1h": 10, "reasoning": 25,
//	   "long": {"above": 200000, "input": 10, "output": 37.5}}]}
//
// Prices are USD per million tokens. provider is the tape's, or the host of a server that is not the provider's own (see
// CostOf). Each of models is the beginning of a model's name; behind it may stand nothing but the mark of a snapshot (a
// date, -latest, @…, :…), so that the price of one version is never taken for that of the next; one that ends in * takes
// anything behind it. The longest beginning wins, the later of two equal ones. Where a price is left out,
// cache_read, cache_write and reasoning are priced as what they are part of, cache_write_1h as cache_write. long takes the
// place of all prices of a call whose input is above so many tokens.
type Prices struct {
	AsOf    string   `json:"as_of"`   // date of the table, YYYY-MM-DD; required, for sums are shown with it
	Sources []string `json:"sources"` // where the prices stand, and when they were read
	Notes   []string `json:"notes"`   // what the table leaves out, for people
	Prices  []Price  `json:"prices"`

	own []Price // of a project, whoever sells; they win
}

// With returns a table that has the prices of a project too: by the beginning of a model's name, as in Models, whoever sells the model.
// They win over those of p. The error names the one that is wrong.
func (p *Prices) With(own map[string]Rates) (*Prices, error) {
	if len(own) == 0 {
		return p, nil
	}
	with := *p
	with.own = nil
	for _, model := range slices.Sorted(maps.Keys(own)) {
		price := Price{Provider: "any", Models: []string{model}, Rates: own[model]}
		if err := price.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", model, err)
		}
		with.own = append(with.own, price)
	}
	return &with, nil
}

// A Price is what some models of a provider cost.
type Price struct {
	Provider string   `json:"provider"`
	Models   []string `json:"models"`
	Rates
	Long *LongRates `json:"long,omitempty"`
}

// Rates are prices in USD per million tokens. Nil is not given; Input is required.
type Rates struct {
	Input        *float64 `json:"input"`
	Output       *float64 `json:"output,omitempty"`
	CacheRead    *float64 `json:"cache_read,omitempty"`
	CacheWrite   *float64 `json:"cache_write,omitempty"`
	CacheWrite1h *float64 `json:"cache_write_1h,omitempty"`
	Reasoning    *float64 `json:"reasoning,omitempty"`
}

// LongRates are the rates of a call whose input has more than Above tokens.
type LongRates struct {
	Above int64 `json:"above"`
	Rates
}

var loadDefault = sync.OnceValue(func() *Prices {
	p, err := LoadPrices(strings.NewReader(defaultPrices))
	if err != nil {
		panic("llm: embedded prices: " + err.Error()) // a test loads them
	}
	return p
})

// DefaultPrices returns the table that is built in: list prices as of its date. It must not be changed.
func DefaultPrices() *Prices { return loadDefault() }

// LoadPrices reads a table that takes the place of the default one. An error names the entry and what is wrong with it.
func LoadPrices(r io.Reader) (*Prices, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrices+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPrices {
		return nil, fmt.Errorf("prices: expected at most %d bytes, got more", maxPrices)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields() // a price under a misspelt name would read as one that is not given
	p := new(Prices)
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("prices: expected one object, got more behind it")
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check reports what is wrong with a table.
func (p *Prices) check() error {
	if _, err := time.Parse(time.DateOnly, p.AsOf); err != nil {
		return fmt.Errorf("prices: expected as_of, the table's date as YYYY-MM-DD, got %q: write the day on which the prices were read", p.AsOf)
	}
	for i := range p.Prices {
		if err := p.Prices[i].check(); err != nil {
			return fmt.Errorf("prices: entry %d: %w", i+1, err)
		}
	}
	return nil
}

// check reports what is wrong with an entry.
func (p *Price) check() error {
	if p.Provider == "" || len(p.Models) == 0 {
		return errors.New("expected a provider and models, got none")
	}
	for _, m := range p.Models {
		if strings.TrimSuffix(m, "*") == "" {
			return fmt.Errorf("expected the beginning of a model's name, got %q", m)
		}
	}
	if p.Long != nil {
		if p.Long.Above <= 0 {
			return fmt.Errorf("expected long.above in tokens, more than 0, got %d", p.Long.Above)
		}
		if err := p.Long.check(); err != nil {
			return fmt.Errorf("long: %w", err)
		}
	}
	return p.Rates.check()
}

func (r *Rates) check() error {
	if r.Input == nil {
		return errors.New("expected a price of input, got none")
	}
	for _, price := range []*float64{r.Input, r.Output, r.CacheRead, r.CacheWrite, r.CacheWrite1h, r.Reasoning} {
		if price != nil && (*price < 0 || math.IsInf(*price, 0)) {
			return fmt.Errorf("expected prices of 0 or more, got %g", *price)
		}
	}
	return nil
}
