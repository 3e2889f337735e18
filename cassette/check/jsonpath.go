package check

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A jsonPath names places of a JSON value: $, .name, ['name'], [3], [-1], .*, [*] and ..name, a part of RFC 9535.
type jsonPath struct {
	text  string
	steps []pathStep
}

type pathStep struct {
	name  string
	index int
	kind  stepKind
	deep  bool // at any depth
}

type stepKind uint8

const (
	stepName stepKind = iota
	stepIndex
	stepAll
)

var pathPart = lazyregexp.New(`^(?:(\.\.?)([A-Za-z_][A-Za-z0-9_-]*|\*)|\[(?:(-?[0-9]{1,9})|(\*)|'([^']*)'|"([^"]*)")\])`)

// UnmarshalJSON reads a text that has the form of a path.
func (p *jsonPath) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*p = parsePath(s)
	return nil
}

func parsePath(s string) jsonPath {
	p := jsonPath{text: s}
	rest := strings.TrimPrefix(s, "$")
	for rest != "" {
		m := pathPart.FindStringSubmatch(rest)
		if m == nil {
			break // the pattern of the scenario's shape lets none through
		}
		rest = rest[len(m[0]):]
		step := pathStep{name: m[2] + m[5] + m[6], deep: m[1] == ".."}
		switch {
		case m[2] == "*" || m[4] != "":
			step.kind = stepAll
		case m[3] != "":
			step.kind = stepIndex
			step.index, _ = strconv.Atoi(m[3])
		}
		p.steps = append(p.steps, step)
	}
	return p
}

// maxPlaces is how many places of one value a path is followed to.
const maxPlaces = 100_000

// in returns what stands at the path's places in v.
func (p *jsonPath) in(v any) []any {
	at := []any{v}
	for _, s := range p.steps {
		var next []any
		for _, x := range at {
			if len(next) > maxPlaces {
				break
			}
			next = s.from(next, x)
		}
		at = next
	}
	return at
}

func (s *pathStep) from(to []any, v any) []any {
	to = s.child(to, v)
	if !s.deep || len(to) > maxPlaces {
		return to
	}
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			to = s.from(to, x)
		}
	case []any:
		for _, x := range v {
			to = s.from(to, x)
		}
	}
	return to
}

func (s *pathStep) child(to []any, v any) []any {
	switch v := v.(type) {
	case map[string]any:
		switch x, ok := v[s.name]; {
		case s.kind == stepAll:
			for _, x := range v {
				to = append(to, x)
			}
		case s.kind == stepName && ok:
			to = append(to, x)
		}
	case []any:
		i := s.index
		if i < 0 {
			i += len(v)
		}
		switch {
		case s.kind == stepAll:
			to = append(to, v...)
		case s.kind == stepIndex && i >= 0 && i < len(v):
			to = append(to, v[i])
		}
	}
	return to
}

// decodeJSON reads a value with its numbers as they are written.
func decodeJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// sameJSON tells whether two values are the same: numbers by their value, objects in any order.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, x := range a {
			if y, ok := b[k]; !ok || !sameJSON(x, y) {
				return false
			}
		}
		return true
	}
	return a == b
}

func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > 40 || len(b) > 40 || strings.ContainsAny(a+b, "eE") {
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return x == y
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}
