package llm

import (
	_ "embed" // of the default table
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/tape"
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

// ID tells tables apart. That of the built-in one, and of nil, which stands for it, is "".
func (p *Prices) ID() string {
	if p == nil || p == DefaultPrices() {
		return ""
	}
	return cas.Sum(jsonscan.MustMarshal([]any{p, p.own})).String()
}

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
		if price != nil && !(*price >= 0 && *price <= math.MaxFloat64) { // NaN neither
			return fmt.Errorf("expected prices of 0 or more, got %g", *price)
		}
	}
	return nil
}

// Cost returns what a usage costs in USD at list price; false where the table has no price for the model, or none for what
// was used (output of a model that is priced by its input alone).
func (p *Prices) Cost(provider, model string, u Usage) (usd float64, known bool) {
	price := p.find(provider, model)
	if price == nil {
		return 0, false
	}
	rates := &price.Rates
	if price.Long != nil && u.InputTokens > price.Long.Above {
		rates = &price.Long.Rates
	}
	return rates.cost(u)
}

// CostOf returns what a call cost in USD at list price; false where it is not known. Who sold it is the host of its URL,
// unless that is the provider's own: a server that speaks a provider's protocol does not take its prices. OpenRouter says
// in its usage what it took: that stands. Calls that were not sold at the list price of text are not known: their usage
// names another tier than the standard one, a search that is billed by itself, or tokens of sound or pictures.
func (p *Prices) CostOf(call *tape.LLMCall) (usd float64, known bool) {
	provider, model := ModelOf(call)
	seller := sellerOf(call.URL, provider)
	usage, err := canonjson.Parse(call.Usage)
	if err == nil && seller == openRouter {
		if cost := get(&usage, "cost"); cost != nil && cost.Kind == canonjson.Number && cost.Num >= 0 {
			return cost.Num, true
		}
	}
	u, ok := UsageOf(call)
	if !ok || err == nil && (!standard(&usage) || !onlyText(&usage)) {
		return 0, false
	}
	return p.Cost(seller, model, u)
}

const openRouter = "openrouter.ai"

// ownHosts are the hosts at which providers sell their own models at list price.
var ownHosts = map[string]string{
	"api.anthropic.com":                 anthropic,
	"api.openai.com":                    openAI,
	"generativelanguage.googleapis.com": gemini,
	"aiplatform.googleapis.com":         gemini,
	"api.cohere.com":                    cohere,
	"api.cohere.ai":                     cohere,
}

// sellerOf names who sold a call: the provider where the tape names no host or the provider's own, else the host.
func sellerOf(rawURL, provider string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" {
		return provider
	}
	host := strings.ToLower(u.Hostname())
	if ownHosts[host] == provider {
		return provider
	}
	return host
}

// standard reports whether a usage names no other tier, place or service than those of the list price.
func standard(usage *canonjson.Value) bool {
	for _, fact := range []struct{ key, standard string }{
		{"service_tier", "standard default"}, {"speed", "standard"}, {"inference_geo", "global not_available"},
		{"trafficType", "ON_DEMAND"},
	} {
		if value := member(usage, fact.key); value != "" && !slices.Contains(strings.Fields(fact.standard), value) {
			return false
		}
	}
	searches, ok := usage.Path("server_tool_use", "web_search_requests")
	return !ok || searches.Num == 0
}

// onlyText reports whether a usage counts no tokens of anything but text: those of sound, pictures and films have prices of
// their own. OpenAI's and its kin's count them in *_details, Gemini's in lists by modality.
func onlyText(usage *canonjson.Value) bool {
	for i := range usage.Members {
		m := &usage.Members[i]
		switch {
		case strings.HasSuffix(m.Key, "_details") && countsMedia(&m.Value),
			strings.HasSuffix(m.Key, "TokensDetails") && slices.ContainsFunc(m.Value.Elems, isMedia):
			return false
		}
	}
	return true
}

// countsMedia reports whether an object of details counts other tokens than those of text.
func countsMedia(details *canonjson.Value) bool {
	for _, key := range []string{"audio_tokens", "image_tokens", "video_tokens"} {
		if n, _ := tokensAt(details, key); n > 0 {
			return true
		}
	}
	return false
}

// isMedia reports whether an element of a list by modality counts tokens of another one than text.
func isMedia(d canonjson.Value) bool {
	n, _ := tokensAt(&d, "tokenCount")
	return member(&d, "modality") != "TEXT" && n > 0
}

// find returns the price of a model, nil for none.
func (p *Prices) find(provider, model string) *Price {
	if own := longest(p.own, model, func(*Price) bool { return true }); own != nil {
		return own
	}
	return longest(p.Prices, model, func(e *Price) bool { return e.Provider == provider })
}

// longest returns the one of some prices with the longest beginning of a model's name, nil for none.
func longest(prices []Price, model string, of func(*Price) bool) (best *Price) {
	model = strings.TrimPrefix(model, "models/")
	most := -1
	for i := range prices {
		if !of(&prices[i]) {
			continue
		}
		for _, pattern := range prices[i].Models {
			if n := len(pattern); n >= most && begins(model, pattern) {
				best, most = &prices[i], n
			}
		}
	}
	return best
}

// snapshot is what may stand behind the name of a version of a model. A preview or an experiment is none: what it costs is
// not what the model costs that it becomes.
var snapshot = lazyregexp.New(`^(-(\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d(\d\d)?|\d{3}|latest)|[@:].*|\[1m\])*$`)

// AnsweredBy is the model that answered a call for asked, whose answer names answered: asked where that is the same model, by another of
// its names or by its snapshot, or no name at all.
func AnsweredBy(asked, answered string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(asked, "models/"), "-latest")
	if answered == "" || begins(answered, name) || strings.HasSuffix(answered, "/"+name) || strings.HasSuffix(name, "/"+answered) {
		return asked
	}
	return answered
}

// begins reports whether a model is that of a pattern.
func begins(model, pattern string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(model, prefix)
	}
	rest, ok := strings.CutPrefix(model, pattern)
	return ok && snapshot.MatchString(rest)
}

// cost returns what a usage costs; false where a price that it needs is not given.
func (r *Rates) cost(u Usage) (usd float64, known bool) {
	output := 0.0
	if r.Output != nil {
		output = *r.Output
	} else if u.OutputTokens > 0 {
		return 0, false
	}
	read := min(u.CacheReadTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-read)
	hour := min(u.CacheWrite1hTokens, written)
	reasoning := min(u.ReasoningTokens, u.OutputTokens)
	write := or(r.CacheWrite, *r.Input)
	total := float64(u.InputTokens-read-written)**r.Input +
		float64(read)*or(r.CacheRead, *r.Input) +
		float64(written-hour)*write +
		float64(hour)*or(r.CacheWrite1h, write) +
		float64(u.OutputTokens-reasoning)*output +
		float64(reasoning)*or(r.Reasoning, output)
	const million = 1e6
	return total / million, true
}

// or returns a price, or another one where it is not given.
func or(price *float64, other float64) float64 {
	if price == nil {
		return other
	}
	return *price
}

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

// At says whose prices they are.
func (b *Bill) At() string {
	if len(b.prices.own) > 0 {
		return "the project's prices and list prices of " + b.AsOf()
	}
	return "list prices of " + b.AsOf()
}

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
