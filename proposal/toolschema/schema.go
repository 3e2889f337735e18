// Package toolschema checks parameters of tool calls by the JSON Schema that the tool was registered with.
//
// Goals: the drafts from 4 on, those before 2019-09 with their formats; nothing is loaded from anywhere; a schema is bounded in size and depth, and a check in what it may take, whoever wrote
// either. It stands apart from proposal so that the types of proposals, which clients use, bring no schema compiler with them.
package toolschema

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
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

// A Schema checks parameters, for several goroutines at once. A nil *Schema lets anything pass.
type Schema struct {
	root   *node
	tracks bool
}

// Compile compiles a schema, by default of draft 2020-12. Nothing is loaded: what it refers to stands in it. The error is a *Error.
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
	s = new(Schema)
	if s.root, s.tracks, err = compileTree(&tree); err != nil {
		return nil, refuse("%.1000s", err.Error())
	}
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

// Problem says what of the parameters the schema does not allow; "" is nothing.
func (s *Schema) Problem(tool string, parameters *policy.Parameters) (problem string) {
	if s == nil {
		return ""
	}
	v, err := canonjson.Parse(parameters.Raw())
	for _, name := range s.root.required {
		if child(&v, name) == nil {
			return fmt.Sprintf("missing required parameter '%.200s' for tool '%.200s'", name, tool)
		}
	}
	if err == nil {
		err = s.check(&v)
	}
	if err != nil {
		return fmt.Sprintf("tool '%.200s' parameter validation: %v", tool, err)
	}
	return ""
}

var (
	uuidText     = lazyregexp.New(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	hostnameText = lazyregexp.New(`^(?i)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
)

// isFormat reports whether text has a format, of those that the drafts name and that need no table of their own. What is not known passes.
func isFormat(format, text string) bool {
	switch format {
	case "email":
		a, err := mail.ParseAddress(text)
		return err == nil && a.Address == text
	case "ipv4":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4()
	case "ipv6":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is6() && a.Zone() == ""
	case "hostname":
		return len(text) <= 253 && hostnameText.MatchString(text)
	case "uri":
		u, err := url.Parse(text)
		return err == nil && u.IsAbs()
	case "uri-reference":
		_, err := url.Parse(text)
		return err == nil && !strings.Contains(text, `\`)
	case "date-time":
		return isTime("2006-01-02T15:04:05Z07:00", strings.ToUpper(text))
	case "date":
		return isTime("2006-01-02", text)
	case "time":
		return isTime("15:04:05Z07:00", strings.ToUpper(text))
	case "regex":
		_, err := syntax.Parse(text, syntax.Perl)
		return err == nil
	case "uuid":
		return uuidText.MatchString(text)
	case "json-pointer":
		return text == "" || strings.HasPrefix(text, "/")
	}
	return true
}

func isTime(layout, text string) bool {
	_, err := time.Parse(layout, text)
	return err == nil
}
