package toolschema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A node is one schema. What a schema does not say is nil or zero.
type node struct {
	never   bool // it is false
	ref     *node
	types   []string        // in the order of kinds
	allowed map[string]bool // canonical texts of enum and const
	low     []bound
	high    []bound
	of      *number // multipleOf

	length, count, members span // of texts, lists, objects
	pattern                *pattern
	format                 string

	prefix           []*node // of a list
	items            *node   // the rest of it
	contains         *node
	containing       span
	unique           bool
	unevaluatedItems *node

	required              []string
	properties            map[string]*node
	patterns              []patternNode
	additional            *node
	names                 *node
	needs                 map[string][]string // dependentRequired
	depending             map[string]*node    // dependentSchemas
	unevaluatedProperties *node

	all, any, one      []*node
	not                *node
	when, then, orElse *node
}

// A span bounds how many there are of something. max is -1 where there is no bound.
type span struct{ min, max int }

// A bound is a limit of numbers.
type bound struct {
	keyword string
	limit   *number
	strict  bool
}

type pattern struct {
	*boundedregexp.Regexp
	text string
}

type patternNode struct {
	pattern *pattern
	node    *node
}

// A compiler makes nodes of a schema's text. It loads nothing.
type compiler struct {
	root    *canonjson.Value
	asserts bool // formats are held, as the drafts before 2019-09 have it
	alone   bool // nothing counts beside a $ref, as they have it

	bases   map[*canonjson.Value]*url.URL // of the schemas and what lies in them
	named   map[string]*canonjson.Value   // by absolute address, without fragment or with that of an anchor
	nodes   map[*canonjson.Value]*node
	pending []func() error // what a node waits for that may lead back to it
	tracks  bool           // some schema asks what others have looked at
}

// Drafts, by what their addresses hold. Those of loose hold formats, and let a $ref stand alone.
var drafts = []struct {
	address string
	loose   bool
}{
	{"json-schema.org/draft-04/schema", true}, {"json-schema.org/draft-06/schema", true}, {"json-schema.org/draft-07/schema", true},
	{"json-schema.org/draft/2019-09/schema", false}, {"json-schema.org/draft/2020-12/schema", false},
}

// A shapeError says what of a schema is none.
type shapeError struct{ keyword, want string }

func (e *shapeError) Error() string {
	return fmt.Sprintf("it is no JSON Schema: %s must be %s", e.keyword, e.want)
}

// here is the address of a schema that says none.
var here = &url.URL{Scheme: "tapedeck", Path: "/schema.json"}

// compileTree makes nodes of tree, and says whether one of them asks what others have looked at.
func compileTree(tree *canonjson.Value) (root *node, tracks bool, err error) {
	c := &compiler{
		root: tree, bases: make(map[*canonjson.Value]*url.URL), named: make(map[string]*canonjson.Value), nodes: make(map[*canonjson.Value]*node),
	}
	if err := c.draft(); err != nil {
		return nil, false, err
	}
	c.named[here.String()] = tree
	if err := c.name(tree, here); err != nil {
		return nil, false, err
	}
	root, err = c.node(tree)
	for err == nil && len(c.pending) > 0 {
		next := c.pending[0]
		c.pending = c.pending[1:]
		err = next()
	}
	return root, c.tracks, err
}

// draft finds out which one it is.
func (c *compiler) draft() error {
	v, ok := c.root.Get("$schema")
	if !ok {
		return nil
	}
	for _, d := range drafts {
		address := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(v.Str, "#"), "https://"), "http://")
		if v.Kind == canonjson.String && address == d.address {
			c.asserts, c.alone = d.loose, d.loose
			return nil
		}
	}
	return elsewhere(v.Str)
}

func elsewhere(address string) error {
	return fmt.Errorf("it refers to %.200s, and nothing is loaded: put it under $defs and refer to it by #/$defs/…", address)
}

// name notes the address of v and of all in it: $id, $anchor.
func (c *compiler) name(v *canonjson.Value, base *url.URL) error {
	for i := range v.Elems {
		if err := c.name(&v.Elems[i], base); err != nil {
			return err
		}
	}
	for _, key := range []string{"$id", "id"} {
		id, ok := v.Get(key)
		if !ok || id.Kind != canonjson.String || key == "id" && !c.alone {
			continue
		}
		address, err := base.Parse(id.Str)
		if err != nil {
			return &shapeError{key, "an address"}
		}
		if address.Fragment == "" {
			base = address
		}
		c.named[address.String()] = v
	}
	c.bases[v] = base
	for i := range v.Members {
		m := &v.Members[i]
		switch m.Key {
		case "enum", "const", "default", "examples":
			continue // values, and no schemas
		case "$anchor":
			if m.Value.Kind == canonjson.String {
				at := *base
				at.Fragment = m.Value.Str
				c.named[at.String()] = v
			}
		}
		if err := c.name(&m.Value, base); err != nil {
			return err
		}
	}
	return nil
}

// refer finds what a $ref of v leads to.
func (c *compiler) refer(v *canonjson.Value, ref string) (*canonjson.Value, error) {
	address, err := c.bases[v].Parse(ref)
	if err != nil {
		return nil, &shapeError{"$ref", "an address"}
	}
	if at := c.named[address.String()]; at != nil {
		return at, nil
	}
	fragment := address.Fragment
	address.Fragment, address.RawFragment = "", ""
	at := c.named[address.String()]
	if at == nil {
		return nil, elsewhere(ref)
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		return nil, fmt.Errorf("%.200s leads nowhere", ref)
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if fragment == "" {
			break
		}
		if at = child(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(token)); at == nil {
			return nil, fmt.Errorf("%.200s leads nowhere", ref)
		}
	}
	return at, nil
}

// child is the member or element of v that a JSON Pointer's token names; nil for none.
func child(v *canonjson.Value, token string) *canonjson.Value {
	if i, err := strconv.Atoi(token); err == nil && v.Kind == canonjson.Array && i >= 0 && i < len(v.Elems) {
		return &v.Elems[i]
	}
	for i := range v.Members {
		if v.Members[i].Key == token {
			return &v.Members[i].Value
		}
	}
	return nil
}

// node is the schema v, which may be on its way.
func (c *compiler) node(v *canonjson.Value) (*node, error) {
	if n := c.nodes[v]; n != nil {
		return n, nil
	}
	n := &node{length: span{max: -1}, count: span{max: -1}, members: span{max: -1}, containing: span{min: 1, max: -1}}
	c.nodes[v] = n
	switch v.Kind {
	case canonjson.Bool:
		n.never = !v.Bool
		return n, nil
	case canonjson.Object:
	default:
		return nil, &shapeError{"a schema", "an object or a boolean"}
	}
	if ref, ok := v.Get("$ref"); ok {
		if ref.Kind != canonjson.String {
			return nil, &shapeError{"$ref", "a string"}
		}
		at, err := c.refer(v, ref.Str)
		if err != nil {
			return nil, err
		}
		c.pending = append(c.pending, func() (err error) {
			n.ref, err = c.node(at)
			return err
		})
		if c.alone {
			return n, nil
		}
	}
	for i := range v.Members {
		m := &v.Members[i]
		if read := keyword(m.Key); read != nil {
			if err := read(c, n, m, v); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// keyword is what reads by a keyword into a node; nil for a remark.
func keyword(name string) reading {
	switch name {
	case "type":
		return readTypes
	case "enum", "const":
		return readAllowed
	case "format":
		return readFormat
	case "pattern":
		return readPattern
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return readBound
	case "multipleOf":
		return readMultiple
	case "minLength", "minItems", "minProperties", "minContains":
		return readLeast
	case "maxLength", "maxItems", "maxProperties", "maxContains":
		return readMost
	case "uniqueItems":
		return readUnique
	case "required":
		return readRequired
	case "properties":
		return readProperties
	case "patternProperties":
		return readPatterns
	case "items":
		return readItems
	case "dependentRequired", "dependentSchemas", "dependencies":
		return readDependencies
	case "$defs", "definitions":
		return readDefinitions
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return readList
	case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return readBelow
	}
	return nil
}

type reading = func(*compiler, *node, *canonjson.Member, *canonjson.Value) error

// below is where a node keeps the one schema of a keyword.
func (n *node) below(keyword string) **node {
	return map[string]**node{
		"not": &n.not, "if": &n.when, "then": &n.then, "else": &n.orElse, "contains": &n.contains, "propertyNames": &n.names,
		"additionalProperties": &n.additional, "unevaluatedItems": &n.unevaluatedItems, "unevaluatedProperties": &n.unevaluatedProperties,
	}[keyword]
}

func readBelow(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) (err error) {
	c.tracks = c.tracks || strings.HasPrefix(m.Key, "unevaluated")
	*n.below(m.Key), err = c.node(&m.Value)
	return err
}

func readList(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	at := map[string]*[]*node{"prefixItems": &n.prefix, "allOf": &n.all, "anyOf": &n.any, "oneOf": &n.one, "items": &n.prefix}[m.Key]
	if m.Value.Kind != canonjson.Array || len(m.Value.Elems) == 0 {
		return &shapeError{m.Key, "a list of schemas"}
	}
	for i := range m.Value.Elems {
		sub, err := c.node(&m.Value.Elems[i])
		if err != nil {
			return err
		}
		*at = append(*at, sub)
	}
	return nil
}

// span is where a node keeps the bounds of a keyword without its min or max.
func (n *node) span(what string) *span {
	return map[string]*span{"Length": &n.length, "Items": &n.count, "Properties": &n.members, "Contains": &n.containing}[what]
}

func readLeast(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) (err error) {
	n.span(m.Key[3:]).min, err = whole(m)
	return err
}

func readMost(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) (err error) {
	n.span(m.Key[3:]).max, err = whole(m)
	return err
}

// whole is a number that counts something.
func whole(m *canonjson.Member) (int, error) {
	if v := m.Value; v.Kind != canonjson.Number || v.Num < 0 || v.Num != float64(int(v.Num)) {
		return 0, &shapeError{m.Key, "a whole number that is not negative"}
	}
	return int(m.Value.Num), nil
}

// kinds are the types of values, in the order in which they are told.
var kinds = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

func readTypes(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	names, err := texts(m)
	if m.Value.Kind == canonjson.String {
		names, err = []string{m.Value.Str}, nil
	}
	for _, name := range names {
		if !slices.Contains(kinds, name) {
			err = &shapeError{m.Key, "of " + strings.Join(kinds, ", ")}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(kinds, a) - slices.Index(kinds, b) })
	n.types = names
	return err
}

// texts is a list of strings.
func texts(m *canonjson.Member) ([]string, error) {
	var out []string
	for _, e := range m.Value.Elems {
		if e.Kind != canonjson.String {
			return nil, &shapeError{m.Key, "a list of strings"}
		}
		out = append(out, e.Str)
	}
	if m.Value.Kind != canonjson.Array {
		return nil, &shapeError{m.Key, "a list of strings"}
	}
	return out, nil
}

// readAllowed reads enum and const; of both a value must be.
func readAllowed(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	values := []canonjson.Value{m.Value}
	if m.Key == "enum" {
		if values = m.Value.Elems; m.Value.Kind != canonjson.Array {
			return &shapeError{m.Key, "a list"}
		}
	}
	allowed := make(map[string]bool)
	for _, v := range values {
		if text := string(v.Append(nil)); n.allowed == nil || n.allowed[text] {
			allowed[text] = true
		}
	}
	n.allowed = allowed
	return nil
}

func readFormat(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	if m.Value.Kind != canonjson.String {
		return &shapeError{m.Key, "a string"}
	}
	if c.asserts {
		n.format = m.Value.Str
	}
	return nil
}

func readPattern(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) (err error) {
	if m.Value.Kind != canonjson.String {
		return &shapeError{m.Key, "a string"}
	}
	n.pattern, err = compilePattern(m.Value.Str)
	return err
}

func compilePattern(text string) (*pattern, error) {
	re, err := boundedregexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %.100q: %w", text, err)
	}
	return &pattern{re, text}, nil
}

// readBound reads a limit. In draft 4 the exclusive ones are booleans that say how the other is meant.
func readBound(_ *compiler, n *node, m *canonjson.Member, of *canonjson.Value) error {
	strict := strings.HasPrefix(m.Key, "exclusive")
	if m.Value.Kind == canonjson.Bool && strict {
		return nil
	}
	limit, ok := numberOf(&m.Value)
	if !ok {
		return &shapeError{m.Key, "a number"}
	}
	b := bound{m.Key, limit, strict}
	exclusive, _ := of.Get("exclusive" + strings.ToUpper(m.Key[:1]) + m.Key[1:])
	b.strict = b.strict || exclusive.Bool
	if strings.HasSuffix(strings.ToLower(m.Key), "minimum") {
		n.low = append(n.low, b)
	} else {
		n.high = append(n.high, b)
	}
	return nil
}

func readMultiple(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	of, ok := numberOf(&m.Value)
	if !ok || of.Sign() <= 0 {
		return &shapeError{m.Key, "a number above 0"}
	}
	n.of = of
	return nil
}

func readUnique(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	if m.Value.Kind != canonjson.Bool {
		return &shapeError{m.Key, "a boolean"}
	}
	n.unique = m.Value.Bool
	return nil
}

func readRequired(_ *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) (err error) {
	n.required, err = texts(m)
	return err
}

// readItems reads the schema of a list's elements, or in older drafts a list of them, one for each.
func readItems(c *compiler, n *node, m *canonjson.Member, of *canonjson.Value) (err error) {
	if m.Value.Kind != canonjson.Array {
		n.items, err = c.node(&m.Value)
		return err
	}
	if len(m.Value.Elems) > 0 {
		err = readList(c, n, m, of)
	}
	if rest := child(of, "additionalItems"); err == nil && rest != nil {
		n.items, err = c.node(rest)
	}
	return err
}

// each reads an object of schemas.
func (c *compiler) each(m *canonjson.Member, f func(name string, sub *node) error) error {
	if m.Value.Kind != canonjson.Object {
		return &shapeError{m.Key, "an object of schemas"}
	}
	for i := range m.Value.Members {
		sub, err := c.node(&m.Value.Members[i].Value)
		if err == nil {
			err = f(m.Value.Members[i].Key, sub)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readProperties(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	n.properties = make(map[string]*node)
	return c.each(m, func(name string, sub *node) error {
		n.properties[name] = sub
		return nil
	})
}

func readPatterns(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	return c.each(m, func(name string, sub *node) error {
		p, err := compilePattern(name)
		n.patterns = append(n.patterns, patternNode{p, sub})
		return err
	})
}

// readDefinitions reads schemas that nobody may ask for: they are to be some all the same.
func readDefinitions(c *compiler, _ *node, m *canonjson.Member, _ *canonjson.Value) error {
	return c.each(m, func(string, *node) error { return nil })
}

// readDependencies reads what a property asks for: others, or a schema.
func readDependencies(c *compiler, n *node, m *canonjson.Member, _ *canonjson.Value) error {
	if m.Value.Kind != canonjson.Object {
		return &shapeError{m.Key, "an object"}
	}
	for i := range m.Value.Members {
		d := &m.Value.Members[i]
		if d.Value.Kind == canonjson.Array && m.Key != "dependentSchemas" {
			names, err := texts(d)
			if err != nil {
				return errors.Join(&shapeError{m.Key, "an object of lists"}, err)
			}
			if n.needs == nil {
				n.needs = make(map[string][]string)
			}
			n.needs[d.Key] = names
			continue
		}
		sub, err := c.node(&d.Value)
		if err != nil {
			return err
		}
		if n.depending == nil {
			n.depending = make(map[string]*node)
		}
		n.depending[d.Key] = sub
	}
	return nil
}
