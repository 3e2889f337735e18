package llm

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestDocsPrices loads the table of prices that docs/reference/providers.md shows, and finds every key of the form in its text.
func TestDocsPrices(t *testing.T) {
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```json\n(\\{\"as_of\".*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatalf("%s shows no table of prices", docsFile)
	}
	p, err := LoadPrices(bytes.NewReader(example[1]))
	if err != nil || len(p.Prices) == 0 || p.Prices[1].Long == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	_, cost, _ := strings.Cut(string(page), "\n## Cost\n")
	for _, typ := range []reflect.Type{reflect.TypeFor[Prices](), reflect.TypeFor[Price](), reflect.TypeFor[Rates](), reflect.TypeFor[LongRates]()} {
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(cost, "`"+key+"`") {
				t.Errorf("%s does not tell of the key %s", docsFile, key)
			}
		}
	}
}
