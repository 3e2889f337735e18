package toolschema

import (
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// FuzzSchema compiles whatever schema and checks whatever parameters by it: it is refused, or ends soon, and says the same again.
func FuzzSchema(f *testing.F) {
	for _, text := range []string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a+$","maxLength":3}},"additionalProperties":false}`,
		`{"properties":{"l":{"items":{"$ref":"#/$defs/x"},"uniqueItems":true,"contains":{"const":1}}},"$defs":{"x":{"enum":[1,"a",{"b":[]}]}}}`,
		doubling("anyOf", `{"not":{"$ref":"#"}}`, 8), `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`,
		`{"if":{"required":["a"]},"then":{"dependentRequired":{"a":["l"]}},"unevaluatedProperties":{"multipleOf":1e-300},"propertyNames":{"format":"email"}}`,
		`{"$id":"x","$anchor":"a","$ref":"#a","prefixItems":[true,false]}`, `true`, `{"patternProperties":{"^.$":{"$ref":"x"}}}`,
	} {
		f.Add([]byte(text), []byte(`{"a":"aa","l":[1,1.5,{"b":[]},null],"n":9007199254740993}`))
	}
	f.Fuzz(func(t *testing.T, text, params []byte) {
		p, err := policy.ParseParameters(params)
		if err != nil {
			return
		}
		began := cputime.Spent()
		schema, err := Compile("t", text)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		one, two := schema.Problem("t", p), schema.Problem("t", p)
		if (one == "") != (two == "") {
			t.Errorf("first %q, then %q", one, two)
		}
		if took := cputime.Spent() - began; took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
