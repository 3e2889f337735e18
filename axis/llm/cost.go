package llm

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
// in its usage what it took: that stands. Calls that were not sold at list price, for their usage names another tier than
// the standard one, or with a search that is billed by itself, are not known.
func (p *Prices) CostOf(call *tape.LLMCall) (usd float64, known bool) {
	seller := sellerOf(call)
	usage, err := canonjson.Parse(call.Usage)
	if err == nil && seller == openRouter {
		if cost := get(&usage, "cost"); cost != nil && cost.Kind == canonjson.Number && cost.Num >= 0 {
			return cost.Num, true
		}
	}
	u, ok := UsageOf(call)
	if !ok || err == nil && !standard(&usage) {
		return 0, false
	}
	return p.Cost(seller, call.Model, u)
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
func sellerOf(call *tape.LLMCall) string {
	u, err := url.Parse(call.URL)
	if err != nil || u.Hostname() == "" {
		return call.Provider
	}
	host := strings.ToLower(u.Hostname())
	if ownHosts[host] == call.Provider {
		return call.Provider
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

// find returns the price of a model, nil for none.
func (p *Prices) find(provider, model string) *Price {
	model = strings.TrimPrefix(model, "models/")
	var best *Price
	longest := -1
	for i := range p.Prices {
		if p.Prices[i].Provider != provider {
			continue
		}
		for _, pattern := range p.Prices[i].Models {
			if n := len(pattern); n >= longest && begins(model, pattern) {
				best, longest = &p.Prices[i], n
			}
		}
	}
	return best
}

// snapshot is what may stand behind the name of a version of a model.
var snapshot = regexp.MustCompile(`^(-(\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d(\d\d)?|\d{3}|latest|preview|exp)|[@:].*|\[1m\])*$`)

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
