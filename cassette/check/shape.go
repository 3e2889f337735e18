package check

import "encoding/json"

// A shape says what a place of a scenario may hold. One table of them (shapes.go) is what a file is read by and what the JSON
// Schema is written from, so that the two cannot say different things.
type shape struct {
	kind    kind
	doc     string
	ref     string // the name under which the schema has it once; its doc stands beside each use
	members []member
	values  *shape // of kindObject: the members have any name that keys takes, and this shape; at least one
	keys    *shape
	item    *shape // of kindList; at least min of them
	min     int    // of kindList and kindInt
	max     int    // of kindInt, 0 for none
	enum    []string
	format  format
	either  []*shape // of kindEither: told apart by what stands there

	// What goes together in an object.
	one   [][]string // exactly one of each group
	some  [][]string // at least one of each group
	apart [][]string // at most one of each group
	with  []needs
}

// needs says that a member stands only where one of others does.
type needs struct {
	member string
	others []string
}

// A member is a named place of an object.
type member struct {
	name     string
	required bool
	shape    *shape
}

type kind uint8

const (
	kindObject kind = iota + 1
	kindList
	kindText
	kindInt
	kindBool
	kindTrue // true alone
	kindTime // milliseconds, or a text like 1.5s
	kindAny
	kindEither
)

// A format is what a text must be besides a text.
type format uint8

const (
	formatNone format = iota
	formatRegexp
	formatPath
	formatColor
	formatDigest
	formatFilled // not empty
	formatKey
	formatSignal
	formatBase64
	formatMode
)

// describe names what s takes, for messages.
func (s *shape) describe() string {
	switch s.kind {
	case kindObject:
		return "an object"
	case kindList:
		return "a list"
	case kindText:
		if s.enum != nil {
			return "one of " + quotedList(s.enum)
		}
		return formatNames[s.format]
	case kindInt:
		return "a whole number"
	case kindBool:
		return "true or false"
	case kindTrue:
		return "true"
	case kindTime:
		return `a time in ms (1500) or with its unit ("1.5s")`
	case kindEither:
		all := s.either[0].describe()
		for _, e := range s.either[1:] {
			all += ", or " + e.describe()
		}
		return all
	}
	return "a value"
}

var formatNames = map[format]string{
	formatNone:   "a text",
	formatRegexp: "a regular expression (RE2)",
	formatPath:   "a JSON path like $.a.b[0]",
	formatColor:  `a colour ("red", "bright red", 0 to 255, "#ff8000", "default")`,
	formatDigest: "a SHA-256 of 64 hexadecimal digits",
	formatFilled: "a text that is not empty",
	formatKey:    `a key like "ctrl-c", "up", "f5" or one character`,
	formatSignal: `a signal like "SIGTERM"`,
	formatBase64: "bytes in base64",
	formatMode:   "the name of a mode, or a private mode's number",
}

// Patterns of the formats that have one, for reader and schema alike.
const (
	timePattern   = `^[0-9]{1,6}(\.[0-9]{1,6})?(ms|s|m|h)$`
	pathPattern   = `^\$((\.|\.\.)([A-Za-z_][A-Za-z0-9_-]*|\*)|\[(-?[0-9]{1,9}|\*|'[^']*'|"[^"]*")\])*$`
	colorPattern  = `^(default|(bright )?(black|red|green|yellow|blue|magenta|cyan|white)|[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5]|#[0-9a-fA-F]{6})$`
	digestPattern = `^[0-9a-f]{64}$`
	keyPattern    = `^(.|(ctrl-)?(alt-)?(shift-)?(up|down|left|right|home|end|insert|ins|delete|del|pageup|page-up|pgup|pagedown|page-down|pgdn|f([1-9]|1[0-9]|20))|ctrl-([a-z@\[\\\]^_]|space)|alt-.|enter|return|tab|shift-tab|backtab|backspace|escape|esc|space|paste|mouse|focus-in|focus-out)$`
	signalPattern = `^SIG[A-Z0-9+]+$`
	base64Pattern = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
)

// maxTimeMS is the greatest time that a scenario may name, in ms: some thirty years.
const maxTimeMS = 1_000_000_000_000

// definitions are the parts of a schema that it has once, by their names.
type definitions map[string]any

// schema returns s as JSON Schema (draft 2020-12).
func (d definitions) schema(s *shape) map[string]any {
	m := map[string]any{}
	if s.ref == "" {
		d.fill(m, s)
	} else {
		m["$ref"] = "#/$defs/" + s.ref
		if d[s.ref] == nil {
			once := map[string]any{}
			d[s.ref] = once
			d.fill(once, s)
		}
	}
	if s.doc != "" {
		m["description"] = s.doc
	}
	return m
}

func (d definitions) fill(m map[string]any, s *shape) {
	switch s.kind {
	case kindObject:
		d.object(m, s)
	case kindList:
		m["type"], m["items"] = "array", d.schema(s.item)
		if s.min > 0 {
			m["minItems"] = s.min
		}
	case kindText:
		s.textSchema(m)
	case kindInt:
		m["type"], m["minimum"] = "integer", s.min
		if s.max > 0 {
			m["maximum"] = s.max
		}
	case kindBool:
		m["type"] = "boolean"
	case kindTrue:
		m["const"] = true
	case kindTime:
		m["anyOf"] = []any{
			map[string]any{"type": "number", "minimum": 0, "maximum": maxTimeMS},
			map[string]any{"type": "string", "pattern": timePattern},
		}
	case kindEither:
		all := make([]any, len(s.either))
		for i, e := range s.either {
			all[i] = d.schema(e)
		}
		m["anyOf"] = all
	}
}

func (s *shape) textSchema(m map[string]any) {
	m["type"] = "string"
	if s.enum != nil {
		m["enum"] = s.enum
	}
	switch s.format {
	case formatRegexp:
		m["format"] = "regex"
	case formatFilled:
		m["minLength"] = 1
	case formatNone:
	default:
		m["pattern"] = formatPatterns[s.format]
	}
}

var formatPatterns = map[format]string{
	formatPath: pathPattern, formatColor: colorPattern, formatDigest: digestPattern, formatKey: keyPattern,
	formatSignal: signalPattern, formatBase64: base64Pattern, formatMode: modePattern,
}

func (d definitions) object(m map[string]any, s *shape) {
	m["type"] = "object"
	if s.values != nil {
		m["additionalProperties"], m["minProperties"], m["propertyNames"] = d.schema(s.values), 1, d.schema(s.keys)
		return
	}
	properties, required := map[string]any{}, []string{}
	for _, k := range s.members {
		properties[k.name] = d.schema(k.shape)
		if k.required {
			required = append(required, k.name)
		}
	}
	m["properties"], m["additionalProperties"] = properties, false
	if len(required) > 0 {
		m["required"] = required
	}
	if all := s.together(); len(all) > 0 {
		m["allOf"] = all
	}
}

// together returns the schemas of what goes together.
func (s *shape) together() (all []any) {
	for _, group := range s.one {
		all = append(all, map[string]any{"oneOf": standing(group)})
	}
	for _, group := range s.some {
		all = append(all, map[string]any{"anyOf": standing(group)})
	}
	for _, group := range s.apart {
		for i, a := range group {
			for _, b := range group[i+1:] {
				all = append(all, map[string]any{"not": map[string]any{"required": []string{a, b}}})
			}
		}
	}
	for _, n := range s.with {
		all = append(all, map[string]any{
			"if":   map[string]any{"required": []string{n.member}},
			"then": map[string]any{"anyOf": standing(n.others)},
		})
	}
	return all
}

func standing(names []string) []any {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = map[string]any{"required": []string{n}}
	}
	return all
}

// Schema returns the JSON Schema (draft 2020-12) of scenario files, as it stands in docs/scenario.schema.json. What a schema
// cannot say (that a window ends after it begins) Parse refuses all the same.
func Schema() []byte {
	d := definitions{}
	m := d.schema(scenarioShape)
	m["$defs"] = d
	m["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	m["$id"] = "https://github.com/tapedeck-dev/tapedeck/blob/main/docs/scenario.schema.json"
	m["title"] = "Tapedeck scenario, version 1"
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err) // maps, lists and texts
	}
	return append(b, '\n')
}
