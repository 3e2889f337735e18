package toolschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// check says what a schema has against parameters.
func check(t *testing.T, schemaText, parameters string) string {
	t.Helper()
	s, err := Compile("t", json.RawMessage(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.ParseParameters([]byte(parameters))
	if err != nil {
		t.Fatal(err)
	}
	return s.Problem("t", p)
}

func TestParametersAgreeWithTheSchema(t *testing.T) {
	const object = `{"type":"object","required":["q"],"additionalProperties":false,"properties":{
		"q":{"type":"string","pattern":"^[a-z]+$","maxLength":5},"n":{"type":"integer","minimum":1},
		"mode":{"enum":["fast","slow",3,{"a":[1,null]}]},"one":{"const":{"b":1.0,"a":true}},
		"list":{"type":"array","items":{"$ref":"#/$defs/item"},"uniqueItems":true}},"$defs":{"item":{"type":["string","null"]}}}`
	for _, tt := range []struct{ name, schema, parameters, want string }{
		{"none", ``, `{"a":1}`, ""},
		{"null", `null`, `{"a":1}`, ""},
		{"empty", ` {} `, `{"a":1}`, ""},
		{"all of it", object, `{"q":"ab","n":3,"mode":"fast","one":{"a":true,"b":1},"list":["x",null]}`, ""},
		{"a whole number with a point", object, `{"q":"ab","n":3.0}`, ""},
		{"a required one is missing", object, `{"n":0}`, "missing required parameter 'q' for tool 't'"},
		{"a required one is missing, of none", object, ``, "missing required parameter 'q' for tool 't'"},
		{"a pattern", object, `{"q":"A"}`, "tool 't' parameter validation: 'A' does not match pattern '^[a-z]+$' (at /q)"},
		{"a length", object, `{"q":"abcdef"}`, "tool 't' parameter validation: maxLength: got 6, want 5 (at /q)"},
		{"a type", object, `{"q":1}`, "tool 't' parameter validation: got number, want string (at /q)"},
		{"a fraction", object, `{"q":"a","n":1.5}`, "tool 't' parameter validation: got number, want integer (at /n)"},
		{"another key", object, `{"q":"a","z":1}`, "tool 't' parameter validation: additional properties 'z' not allowed (at /)"},
		{"an enumeration", object, `{"q":"a","mode":"Fast"}`, "none of the 4 values that are allowed (at /mode)"},
		{"an enumeration by a number", object, `{"q":"a","mode":3.0}`, ""},
		{"an enumeration by an object", object, `{"q":"a","mode":{"a":[1,null]}}`, ""},
		{"a constant", object, `{"q":"a","one":{"a":true}}`, "none of the 1 values that are allowed (at /one)"},
		{"through a reference", object, `{"q":"a","list":["x",1]}`, "got number, want null or string (at /list/1)"},
		{"twice in a list", object, `{"q":"a","list":["x","x"]}`, "items at 0 and 1 are equal (at /list)"},
		{"an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"e":{"format":"email"}}}`, `{"e":"x"}`, "not valid"},
		{"large ids stay apart", `{"properties":{"id":{"const":9007199254740993}}}`, `{"id":9007199254740992}`, "none of"},
		{"a large id", `{"properties":{"id":{"const":9007199254740993}}}`, `{"id":9007199254740993}`, ""},
		{"enum and const", `{"properties":{"a":{"enum":[1,2],"const":3}}}`, `{"a":3}`, "none of the 0 values"},
		{"enum and const that agree", `{"properties":{"a":{"enum":[1,2],"const":2}}}`, `{"a":2}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := check(t, tt.schema, tt.parameters)
			if got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestASchemaIsRefusedWhenItsToolIsRegistered(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"not":`, n) + `{}` + strings.Repeat(`}`, n)
	}
	wide := `{"enum":[` + strings.Repeat("1,", maxSchemaNodes) + `1]}`
	for _, tt := range []struct{ name, schema, want string }{
		{"no JSON", `{`, "expected JSON"},
		{"a text", `"x"`, "expected an object"},
		{"a list", `[]`, "expected an object"},
		{"a key twice", `{"type":"object","type":"string"}`, "a second time"},
		{"no schema", `{"type":"objekt"}`, "it is no JSON Schema"},
		{"no schema within", `{"properties":{"a":{"minimum":"1"}}}`, "it is no JSON Schema"},
		{"10,000 nested", nested(10_000), "expected JSON"},
		{"nested", nested(maxSchemaDepth + 1), "nested deeper"},
		{"wide", wide, "more than 20000 values"},
		{"long", `{"title":"` + strings.Repeat("a", MaxSize) + `"}`, "bytes"},
		{"a regex bomb", `{"properties":{"a":{"pattern":"(((a{30}){30}){30}){30}"}}}`, "pattern"},
		{"a large regex", `{"patternProperties":{"` + strings.Repeat("a{900}", 6) + `":{}}}`, "steps"},
		{"looking ahead", `{"properties":{"a":{"pattern":"(?!x)"}}}`, "RE2"},
		{"remote", `{"$ref":"https://example.com/x.json"}`, "nothing is loaded"},
		{"remote within", `{"properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}`, "nothing is loaded"},
		{"a file", `{"$ref":"file:///etc/passwd"}`, "nothing is loaded"},
		{"a path", `{"$ref":"other.json"}`, "nothing is loaded"},
		{"a metaschema that is elsewhere", `{"$schema":"https://example.com/meta"}`, "nothing is loaded"},
		{"nowhere", `{"$ref":"#/$defs/x"}`, "$defs/x"},
		{"dynamic", `{"$dynamicRef":"#x"}`, "$dynamicRef is not read here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := cputime.Spent()
			_, err := Compile("t", json.RawMessage(tt.schema))
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 2000 {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			t.Log(cputime.Spent() - began)
		})
	}
}

func TestASchemaLoadsNothing(t *testing.T) {
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer server.Close()
	for _, text := range []string{`{"$ref":"` + server.URL + `/x"}`, `{"$schema":"` + server.URL + `/x"}`, `{"$id":"` + server.URL + `/a","$ref":"b"}`} {
		if _, err := Compile("t", json.RawMessage(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	if asked.Load() {
		t.Error("the schema was asked for")
	}
	if s, err := Compile("t", json.RawMessage(`{"$id":"https://example.com/a","$ref":"#/$defs/b","$defs":{"b":{}}}`)); err != nil || s == nil {
		t.Error("an id that is an address is a name, and nothing else:", err)
	}
}

// doubling is a schema in which each definition refers twice to the next.
func doubling(keyword, last string, n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":%s}}`, n, last)
	return b.String()
}

func TestACheckIsBounded(t *testing.T) {
	long := `{"a":[` + strings.TrimSuffix(strings.Repeat(`"aaaa",`, maxChecks), ",") + `]}`
	tree := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
	for _, tt := range []struct{ name, schema, parameters string }{
		{"all of", doubling("allOf", `{"type":"object"}`, 40), `{}`},
		{"any of that fail", doubling("anyOf", `{"type":"string"}`, 40), `{}`},
		{"one of that fail", doubling("oneOf", `{"type":"string"}`, 40), `{}`},
		{"not any of", "", `{}`},
		{"down the value", `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, tree},
		{"a long list", `{"properties":{"a":{"items":{"enum":["a","b"]}}}}`, long},
		{"a large value often", `{"properties":{"a":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"enum":["b",["c"]]},`, 2000), ",") + `]}}}`, long},
		{"a long text", `{"properties":{"a":{"pattern":"` + strings.Repeat("a{900}", 4) + `"}}}`, `{"a":"` + strings.Repeat("a", 1<<20) + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "not any of" {
				tt.schema = strings.Replace(doubling("anyOf", `{"type":"string"}`, 40), `"$ref":"#/$defs/d0"`, `"not":{"$ref":"#/$defs/d0"}`, 1)
			}
			began := cputime.Spent()
			got := check(t, tt.schema, tt.parameters)
			if !strings.Contains(got, errCostly.Error()) && !strings.Contains(got, "too long for the pattern") {
				t.Errorf("got %q", got)
			}
			t.Log(cputime.Spent() - began)
		})
	}
}

func TestACycleOfReferencesEnds(t *testing.T) {
	s, err := Compile("t", json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`))
	if err == nil && s.Problem("t", nil) == "" {
		t.Error("a schema that is its own condition lets things pass")
	}
}

// After a check that took too much, and beside others, a schema counts from the start.
func TestChecksDoNotShareTheirBudget(t *testing.T) {
	s, err := Compile("t", json.RawMessage(`{"properties":{"a":{"items":{"enum":["a"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := `{"a":[` + strings.TrimSuffix(strings.Repeat(`"a",`, maxChecks/4), ",") + `]}`
	p, err := policy.ParseParameters([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if problem := s.Problem("t", p); problem != "" {
					t.Error(problem)
				}
			}
		})
	}
	wg.Wait()
}
