package recording

import "strconv"

// Totals are what a recording comes to, in a few numbers. Package account adds them up; recording.json keeps them, so that a list of
// recordings need not read their tapes.
type Totals struct {
	Models       []string `json:"models"` // that were asked, in order
	Turns        int      `json:"turns"`  // answers of models in conversations
	Tools        int      `json:"tools"`  // calls of tools that models asked for
	Failed       int      `json:"failed"` // calls of models that none answered
	Spawns       int      `json:"spawns"` // processes beside the program
	Files        int      `json:"files"`  // of the work tree, changed
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CachedTokens int64    `json:"cached_tokens"` // of InputTokens, read from a cache
	Uncounted    int      `json:"uncounted"`     // answers that do not say what they used
	CostUSD      *float64 `json:"cost_usd"`      // null where that of one answer is not known
	PricedUSD    float64  `json:"priced_usd"`    // of the answers whose cost is known
	Unpriced     []string `json:"unpriced"`      // models without a price, ten at most
	PricesAsOf   string   `json:"prices_as_of"`  // date of the table
	DurationMS   int64    `json:"duration_ms"`
}

// Cost is what the answers cost, for people: "$0.0042", "$0.0042 + ?" where that of some is not known, "unknown" where it is of none.
func (t *Totals) Cost() string {
	switch {
	case t.CostUSD != nil:
		return Dollars(*t.CostUSD)
	case t.PricedUSD > 0:
		return Dollars(t.PricedUSD) + " + ?"
	}
	return "unknown"
}

// Dollars has four decimals; less than the last of them is said to be less.
func Dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	}
	return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
}
