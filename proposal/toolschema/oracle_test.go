package toolschema

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// TestAgreesWithALibrary holds every value of a list against every schema of another, here and by a library.
func TestAgreesWithALibrary(t *testing.T) {
	const old = `"$schema":"http://json-schema.org/draft-07/schema#",`
	schemas := []string{
		`true`, `false`, `{}`, `{"type":"integer"}`, `{"type":["number","null"]}`, `{"type":"array"}`, `{"enum":[1,"a",[1],{"a":1.0}]}`, `{"const":null}`,
		`{"minimum":1,"maximum":2}`, `{"exclusiveMinimum":1,"exclusiveMaximum":3}`, `{"multipleOf":0.1}`, `{"multipleOf":2}`, `{"minimum":9007199254740993}`,
		`{"minLength":2,"maxLength":3}`, `{"pattern":"^a"}`, `{"pattern":"é"}`, `{"format":"email"}`, `{"minItems":1,"maxItems":2}`, `{"uniqueItems":true}`,
		`{"items":{"type":"integer"}}`, `{"prefixItems":[{"type":"integer"},{"type":"string"}]}`, `{"prefixItems":[true],"items":false}`,
		`{"contains":{"type":"integer"}}`, `{"contains":{"type":"integer"},"minContains":2,"maxContains":3}`, `{"contains":{"const":7},"minContains":0}`,
		`{"minProperties":1,"maxProperties":1}`, `{"required":["a","b"]}`, `{"properties":{"a":{"type":"integer"},"b":false}}`,
		`{"properties":{"a":{}},"additionalProperties":false}`, `{"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":{"type":"string"}}`,
		`{"propertyNames":{"maxLength":1}}`, `{"dependentRequired":{"a":["b"]}}`, `{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"dependencies":{"a":["b"]}}`,
		`{"allOf":[{"minimum":1},{"maximum":2}]}`, `{"anyOf":[{"type":"string"},{"minimum":2}]}`, `{"oneOf":[{"type":"integer"},{"minimum":2}]}`,
		`{"not":{"type":"object"}}`, `{"if":{"type":"integer"},"then":{"minimum":2},"else":{"type":"string"}}`, `{"if":{"required":["a"]},"else":{"required":["b"]}}`,
		`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":{"type":"string"}}`,
		`{"anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"unevaluatedProperties":false}`,
		`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":{}}},"unevaluatedProperties":false}`,
		`{"not":{"not":{"properties":{"a":{}}}},"unevaluatedProperties":false}`, `{"additionalProperties":true,"unevaluatedProperties":false}`,
		`{"prefixItems":[true],"unevaluatedItems":false}`, `{"contains":{"type":"integer"},"unevaluatedItems":{"type":"string"}}`,
		`{"allOf":[{"prefixItems":[true]},{"items":{"type":"integer"}}],"unevaluatedItems":false}`, `{"dependentSchemas":{"a":{"properties":{"b":{}}}},"properties":{"a":{}},"unevaluatedProperties":false}`,
		`{"$ref":"#/$defs/x","maximum":5,"$defs":{"x":{"minimum":1}}}`, `{"$ref":"#x","$defs":{"x":{"$anchor":"x","type":"string"}}}`,
		`{"$id":"http://t.test/a/","$ref":"b","$defs":{"x":{"$id":"b","$ref":"#/$defs/y","$defs":{"y":{"type":"integer"}}}}}`,
		`{"properties":{"a":{"$ref":"#"}},"additionalProperties":{"type":"integer"}}`, `{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"integer"}}}`,
		`{` + old + `"items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`, `{` + old + `"additionalItems":false}`, `{` + old + `"format":"email"}`,
		`{` + old + `"$ref":"#/definitions/x","type":"object","definitions":{"x":{"type":"string"}}}`, `{` + old + `"dependencies":{"a":["b"],"b":{"required":["c"]}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`,
	}
	values := []string{
		`null`, `true`, `0`, `1`, `1.0`, `1.5`, `2`, `3`, `0.3`, `-7`, `9007199254740993`, `9007199254740992`, `1e300`, `""`, `"a"`, `"ab"`, `"née"`, `"b@c.de"`, `[]`, `[1]`, `[1,1.0]`,
		`[1,"a"]`, `["a",1]`, `[1,2,3]`, `[[1],[1]]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `["x","y"]`, `{}`, `{"a":1}`, `{"a":"x"}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":1,"b":2,"c":3}`,
		`{"a":{"a":{"z":1}}}`, `{"a":{"z":"x"}}`, `{"aa":1}`, `{"aa":"x","z":"y"}`, `{"c":"x"}`,
	}
	for _, text := range schemas {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(`{"properties":{"v":` + text + `}}`)))
		if text[0] == '{' {
			doc, err = jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		}
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("tapedeck:///schema.json", doc); err != nil {
			t.Fatal(text, err)
		}
		theirs, err := compiler.Compile("tapedeck:///schema.json")
		if err != nil {
			t.Fatal(text, err)
		}
		whole := text
		if text[0] != '{' {
			whole = `{"properties":{"v":` + text + `}}`
		}
		ours, err := Compile("t", []byte(whole))
		if err != nil {
			t.Error(text, err)
			continue
		}
		for _, value := range values {
			if text[0] != '{' {
				value = fmt.Sprintf(`{"v":%s}`, value)
			}
			instance, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(value)))
			if err != nil {
				t.Fatal(err)
			}
			v, err := canonjson.Parse([]byte(value))
			if err != nil {
				t.Fatal(err)
			}
			var got error
			if ours != nil {
				got = ours.check(&v)
			}
			if want := theirs.Validate(instance); (got == nil) != (want == nil) {
				t.Errorf("%s of %s: %v, but by the library %v", value, text, got, want)
			}
		}
	}
}
