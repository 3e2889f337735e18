package llm

import "github.com/tapedeck-dev/tapedeck/internal/canonjson"

// parsed parses a text that is JSON.
func parsed(text string) *canonjson.Value {
	v, err := canonjson.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return &v
}
