// Package toolschema checks parameters of tool calls by the JSON Schema that the tool was registered with.
//
// Goals: any draft; nothing is loaded from anywhere; a schema is bounded in size and depth, and a check in what it may take, whoever wrote
// either. It stands apart from proposal so that the types of proposals, which clients use, bring no schema compiler with them.
package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// Limits of a tool's schema, and of what one check of parameters by it may take.
const (
	MaxSize        = 256 << 10 // bytes
	maxSchemaDepth = 100       // of arrays and objects in each other
	maxSchemaNodes = 20_000    // values, at any depth
	maxChecks      = 200_000   // schemas that are applied to values, and elements of enumerations that are compared
	maxProblems    = 3         // that are told
)

// A Error says why a tool's schema is refused.
type Error struct {
	Tool    string
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("tool '%.200s': its JSON Schema is refused: %s", e.Tool, e.Problem)
}

// A Schema checks parameters. A nil *Schema lets anything pass.
type Schema struct {
	compiled *jsonschema.Schema

	// mu holds one check back while another runs: what is left of one is counted in the compiled schema.
	mu   sync.Mutex
	left int
}

// Compile compiles a schema of any draft, by default 2020-12. Nothing is loaded: what it refers to stands in it, or is
// the metaschema of a draft. The error is a *Error.
func Compile(tool string, raw json.RawMessage) (s *Schema, err error) {
	refuse := func(format string, args ...any) error {
		return &Error{tool, fmt.Sprintf(format, args...)}
	}
	if len(raw) > MaxSize {
		return nil, refuse("%d bytes, more than %d", len(raw), MaxSize)
	}
	tree := canonjson.Value{}
	if len(raw) > 0 {
		if tree, err = canonjson.Parse(raw); err != nil {
			return nil, refuse("expected JSON: %v", err)
		}
	}
	switch {
	case tree.Kind == canonjson.Null, tree.Kind == canonjson.Object && len(tree.Members) == 0:
		return nil, nil
	case tree.Kind != canonjson.Object:
		return nil, refuse("expected an object, got %s", tree.Kind)
	}
	nodes := 0
	if problem := bounded(&tree, 0, &nodes); problem != "" {
		return nil, refuse("%s", problem)
	}
	s = &Schema{}
	if s.compiled, err = load(tree.Append(nil)); err != nil {
		return nil, refuse("%.1000s", problemOf(err))
	}
	s.meter()
	return s, nil
}

// bounded says what of a schema cannot be taken; "" is nothing.
func bounded(v *canonjson.Value, depth int, nodes *int) string {
	*nodes++
	switch {
	case depth > maxSchemaDepth:
		return fmt.Sprintf("nested deeper than %d", maxSchemaDepth)
	case *nodes > maxSchemaNodes:
		return fmt.Sprintf("more than %d values", maxSchemaNodes)
	}
	for i := range v.Elems {
		if problem := bounded(&v.Elems[i], depth+1, nodes); problem != "" {
			return problem
		}
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Key == "$dynamicRef" || m.Key == "$recursiveRef" {
			return m.Key + " is not read here: use $ref"
		}
		if problem := bounded(&m.Value, depth+1, nodes); problem != "" {
			return problem
		}
	}
	return ""
}

// here is the name of the schema among those that it may refer to.
const here = "tapedeck:///schema.json"

// load compiles a schema. The library is not to take the process with it, whatever it is given.
func load(text []byte) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			compiled, err = nil, fmt.Errorf("it cannot be compiled: %v", p)
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := boundedregexp.Compile(pattern)
		return boundedRegexp{re}, err
	})
	if err := c.AddResource(here, doc); err != nil {
		return nil, err
	}
	return c.Compile(here)
}

// nothing is the loader of schemas that lie elsewhere.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %.200s, and nothing is loaded: put it under $defs and refer to it by #/$defs/…", url)
}

// problemOf is the innermost of what went wrong.
func problemOf(err error) string {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return load.Err.Error()
	}
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var verr *jsonschema.ValidationError
		if errors.As(invalid.Err, &verr) {
			return "it is no JSON Schema: " + problems(verr)
		}
	}
	var pattern *jsonschema.InvalidRegexError
	if errors.As(err, &pattern) {
		return fmt.Sprintf("pattern %.100q: %v", pattern.Regex, pattern.Err)
	}
	return err.Error()
}

// Problem says what of the parameters the schema does not allow; "" is nothing.
func (s *Schema) Problem(tool string, parameters *policy.Parameters) (problem string) {
	if s == nil {
		return ""
	}
	values := parameters.Map()
	for _, name := range s.compiled.Required {
		if _, ok := values[name]; !ok {
			return fmt.Sprintf("missing required parameter '%.200s' for tool '%.200s'", name, tool)
		}
	}
	if err := s.validate(values); err != nil {
		return fmt.Sprintf("tool '%.200s' parameter validation: %v", tool, err)
	}
	return ""
}

func (s *Schema) validate(values any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = maxChecks
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				err = fmt.Errorf("%v", p)
			}
		}
	}()
	var verr *jsonschema.ValidationError
	if err := s.compiled.Validate(values); errors.As(err, &verr) {
		return errors.New(problems(verr))
	} else if err != nil {
		return err
	}
	return nil
}

// problems are the innermost causes, the first few by their place.
func problems(verr *jsonschema.ValidationError) string {
	english := message.NewPrinter(language.English)
	var all []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			at := "/" + strings.Join(e.InstanceLocation, "/")
			all = append(all, fmt.Sprintf("%.300s (at %.200s)", e.ErrorKind.LocalizedString(english), at))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(verr)
	slices.Sort(all)
	all = slices.Compact(all)
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}
