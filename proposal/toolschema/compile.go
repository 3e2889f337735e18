package toolschema

import (
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
	bounds  []bound
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
	side    int // 1 where numbers are above it, -1 where they are below
	flag    string
	strict  bool
	limit   *number
}

// limits are the keywords of bounds. In draft 4 the exclusive ones are booleans that say how the others are meant.
var limits = []bound{
	{keyword: "minimum", side: 1, flag: "exclusiveMinimum"}, {keyword: "exclusiveMinimum", side: 1, strict: true},
	{keyword: "maximum", side: -1, flag: "exclusiveMaximum"}, {keyword: "exclusiveMaximum", side: -1, strict: true},
}

type pattern struct {
	*boundedregexp.Regexp
	text string
}

type patternNode struct {
	pattern *pattern
	node    *node
}

// A compiler makes nodes of a schema's text. It loads nothing. What is wrong first stays, and the rest is read as if it were not there.
type compiler struct {
	root  *canonjson.Value
	loose bool // it is of a draft before 2019-09: formats are held, and nothing counts beside a $ref
	err   error

	bases   map[*canonjson.Value]*url.URL // of the schemas and what lies in them
	named   map[string]*canonjson.Value   // by absolute address, without fragment or with that of an anchor
	nodes   map[*canonjson.Value]*node
	pending []func() // what a node waits for that may lead back to it
	tracks  bool     // some schema asks what others have looked at
}

// drafts are those that are read, by their addresses, and whether they are loose.
var drafts = map[string]bool{
	"json-schema.org/draft-04/schema": true, "json-schema.org/draft-06/schema": true, "json-schema.org/draft-07/schema": true,
	"json-schema.org/draft/2019-09/schema": false, "json-schema.org/draft/2020-12/schema": false,
}

// here is the address of a schema that says none.
var here = &url.URL{Scheme: "tapedeck", Path: "/schema.json"}

// compileTree makes nodes of tree, and says whether one of them asks what others have looked at.
func compileTree(tree *canonjson.Value) (root *node, tracks bool, err error) {
	c := &compiler{
		root: tree, bases: make(map[*canonjson.Value]*url.URL), named: make(map[string]*canonjson.Value), nodes: make(map[*canonjson.Value]*node),
	}
	c.draft()
	c.named[here.String()] = tree
	c.name(tree, here)
	root = c.node(tree)
	for c.err == nil && len(c.pending) > 0 {
		next := c.pending[0]
		c.pending = c.pending[1:]
		next()
	}
	return root, c.tracks, c.err
}

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// wrong says what of a schema is none.
func (c *compiler) wrong(keyword, want string) {
	c.fail("it is no JSON Schema: %s must be %s", keyword, want)
}

func (c *compiler) elsewhere(address string) {
	c.fail("it refers to %.200s, and nothing is loaded: put it under $defs and refer to it by #/$defs/…", address)
}

// draft finds out which one it is.
func (c *compiler) draft() {
	v := child(c.root, "$schema")
	if v == nil {
		return
	}
	address := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(v.Text(), "#"), "https://"), "http://")
	loose, known := drafts[address]
	if c.loose = loose; !known {
		c.elsewhere(v.Text())
	}
}

// name notes the address of v and of all in it: $id, $anchor.
func (c *compiler) name(v *canonjson.Value, base *url.URL) {
	for i := range v.Elems {
		c.name(&v.Elems[i], base)
	}
	for _, key := range []string{"$id", "id"} {
		id := child(v, key)
		if id == nil || id.Kind != canonjson.String || key == "id" && !c.loose {
			continue
		}
		address, err := base.Parse(id.Str)
		if err != nil {
			c.wrong(key, "an address")
			return
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
			at := *base
			at.Fragment = m.Value.Text()
			c.named[at.String()] = v
		}
		c.name(&m.Value, base)
	}
}

// refer finds what a $ref of v leads to; nil where it leads nowhere.
func (c *compiler) refer(v *canonjson.Value, ref string) *canonjson.Value {
	address, err := c.bases[v].Parse(ref)
	if err != nil {
		c.wrong("$ref", "an address")
		return nil
	}
	if at := c.named[address.String()]; at != nil {
		return at
	}
	fragment := address.Fragment
	address.Fragment, address.RawFragment = "", ""
	at := c.named[address.String()]
	if at == nil {
		c.elsewhere(ref)
		return nil
	}
	tokens := strings.Split(fragment, "/")
	if tokens[0] != "" {
		at = nil
	}
	for _, token := range tokens[1:] {
		if at != nil {
			at = child(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
		}
	}
	if at == nil {
		c.fail("%.200s leads nowhere", ref)
	}
	return at
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

// node is the schema v, which may be on its way; nil of nil.
func (c *compiler) node(v *canonjson.Value) *node {
	if v == nil || c.nodes[v] != nil {
		return c.nodes[v]
	}
	n := &node{length: span{max: -1}, count: span{max: -1}, members: span{max: -1}}
	c.nodes[v] = n
	switch v.Kind {
	case canonjson.Bool:
		n.never = !v.Bool
		return n
	case canonjson.Object:
	default:
		c.wrong("a schema", "an object or a boolean")
		return n
	}
	if ref := c.get(v, "$ref", canonjson.String, "a string"); ref != nil {
		at := c.refer(v, ref.Str)
		c.pending = append(c.pending, func() { n.ref = c.node(at) })
		if c.loose {
			return n
		}
	}
	c.values(n, v)
	c.lists(n, v)
	c.objects(n, v)
	n.all, n.any, n.one = c.list(v, "allOf"), c.list(v, "anyOf"), c.list(v, "oneOf")
	n.not = c.below(v, "not")
	n.when, n.then, n.orElse = c.below(v, "if"), c.below(v, "then"), c.below(v, "else")
	c.each(v, "$defs") // schemas that nobody may ask for: they are to be some all the same
	c.each(v, "definitions")
	return n
}

// values reads what is said of values, numbers and texts.
func (c *compiler) values(n *node, v *canonjson.Value) {
	n.types = c.types(v)
	n.allowed = c.allowed(v)
	n.bounds = c.bounds(v)
	if of := child(v, "multipleOf"); of != nil {
		var ok bool
		if n.of, ok = numberOf(of); !ok || n.of.Sign() <= 0 {
			c.wrong("multipleOf", "a number above 0")
		}
	}
	n.length = c.span(v, "Length", 0)
	if text := c.get(v, "pattern", canonjson.String, "a string"); text != nil {
		n.pattern = c.pattern(text.Str)
	}
	if format := c.get(v, "format", canonjson.String, "a string"); format != nil && c.loose {
		n.format = format.Str
	}
}

// lists reads what is said of lists. items are the elements, or in older drafts the first of them, one by one.
func (c *compiler) lists(n *node, v *canonjson.Value) {
	n.count, n.containing = c.span(v, "Items", 0), c.span(v, "Contains", 1)
	n.prefix, n.contains = c.list(v, "prefixItems"), c.below(v, "contains")
	if unique := c.get(v, "uniqueItems", canonjson.Bool, "a boolean"); unique != nil {
		n.unique = unique.Bool
	}
	if items := child(v, "items"); items == nil || items.Kind != canonjson.Array {
		n.items = c.node(items)
	} else {
		if len(items.Elems) > 0 {
			n.prefix = c.list(v, "items")
		}
		n.items = c.below(v, "additionalItems")
	}
	n.unevaluatedItems = c.below(v, "unevaluatedItems")
	c.tracks = c.tracks || n.unevaluatedItems != nil
}

// objects reads what is said of objects.
func (c *compiler) objects(n *node, v *canonjson.Value) {
	n.members = c.span(v, "Properties", 0)
	if required := child(v, "required"); required != nil {
		n.required = c.texts("required", required)
	}
	n.properties = c.each(v, "properties")
	for text, sub := range c.each(v, "patternProperties") {
		n.patterns = append(n.patterns, patternNode{c.pattern(text), sub})
	}
	n.additional, n.names = c.below(v, "additionalProperties"), c.below(v, "propertyNames")
	n.unevaluatedProperties = c.below(v, "unevaluatedProperties")
	c.tracks = c.tracks || n.unevaluatedProperties != nil
	n.needs, n.depending = make(map[string][]string), make(map[string]*node)
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		c.dependencies(n, v, key)
	}
}

// dependencies reads what a property asks for: others, or a schema.
func (c *compiler) dependencies(n *node, v *canonjson.Value, key string) {
	all := c.get(v, key, canonjson.Object, "an object")
	if all == nil {
		return
	}
	for i := range all.Members {
		d := &all.Members[i]
		if d.Value.Kind == canonjson.Array && key != "dependentSchemas" {
			n.needs[d.Key] = c.texts(key, &d.Value)
		} else {
			n.depending[d.Key] = c.node(&d.Value)
		}
	}
}

// get is the value of a keyword, nil where it is not there, or of another kind.
func (c *compiler) get(v *canonjson.Value, key string, kind canonjson.Kind, want string) *canonjson.Value {
	m := child(v, key)
	if m != nil && m.Kind != kind {
		c.wrong(key, want)
		return nil
	}
	return m
}

// below is the one schema of a keyword; nil for none.
func (c *compiler) below(v *canonjson.Value, key string) *node { return c.node(child(v, key)) }

// list is a list of schemas.
func (c *compiler) list(v *canonjson.Value, key string) (all []*node) {
	list := child(v, key)
	if list == nil {
		return nil
	}
	if list.Kind != canonjson.Array || len(list.Elems) == 0 {
		c.wrong(key, "a list of schemas")
	}
	for i := range list.Elems {
		all = append(all, c.node(&list.Elems[i]))
	}
	return all
}

// each is an object of schemas.
func (c *compiler) each(v *canonjson.Value, key string) map[string]*node {
	of := c.get(v, key, canonjson.Object, "an object of schemas")
	if of == nil {
		return nil
	}
	all := make(map[string]*node, len(of.Members))
	for i := range of.Members {
		all[of.Members[i].Key] = c.node(&of.Members[i].Value)
	}
	return all
}

func (c *compiler) span(v *canonjson.Value, what string, least int) span {
	return span{c.whole(v, "min"+what, least), c.whole(v, "max"+what, -1)}
}

// whole is a number that counts something.
func (c *compiler) whole(v *canonjson.Value, key string, none int) int {
	m := child(v, key)
	if m == nil {
		return none
	}
	if m.Kind != canonjson.Number || m.Num < 0 || m.Num != float64(int(m.Num)) {
		c.wrong(key, "a whole number that is not negative")
	}
	return int(m.Num)
}

// kinds are the types of values, in the order in which they are told.
var kinds = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

func (c *compiler) types(v *canonjson.Value) (names []string) {
	switch m := child(v, "type"); {
	case m == nil:
		return nil
	case m.Kind == canonjson.String:
		names = []string{m.Str}
	default:
		names = c.texts("type", m)
	}
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(kinds, name) }) {
		c.wrong("type", "of "+strings.Join(kinds, ", "))
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(kinds, a) - slices.Index(kinds, b) })
	return names
}

// texts is a list of strings.
func (c *compiler) texts(key string, list *canonjson.Value) (out []string) {
	for i := range list.Elems {
		out = append(out, list.Elems[i].Str)
	}
	if list.Kind != canonjson.Array || slices.ContainsFunc(list.Elems, func(e canonjson.Value) bool { return e.Kind != canonjson.String }) {
		c.wrong(key, "a list of strings")
	}
	return out
}

// allowed reads enum and const; of both a value must be. nil allows all.
func (c *compiler) allowed(v *canonjson.Value) (allowed map[string]bool) {
	one := child(v, "const")
	if one != nil {
		allowed = map[string]bool{string(one.Append(nil)): true}
	}
	list := c.get(v, "enum", canonjson.Array, "a list")
	if list == nil {
		return allowed
	}
	both := make(map[string]bool)
	for i := range list.Elems {
		if text := string(list.Elems[i].Append(nil)); one == nil || allowed[text] {
			both[text] = true
		}
	}
	return both
}

func (c *compiler) pattern(text string) *pattern {
	re, err := boundedregexp.Compile(text)
	if err != nil {
		c.fail("pattern %.100q: %w", text, err)
	}
	return &pattern{re, text}
}

func (c *compiler) bounds(v *canonjson.Value) (all []bound) {
	for _, b := range limits {
		m := child(v, b.keyword)
		if m == nil || b.strict && m.Kind == canonjson.Bool {
			continue
		}
		var ok bool
		if b.limit, ok = numberOf(m); !ok {
			c.wrong(b.keyword, "a number")
		}
		if exclusive := child(v, b.flag); exclusive != nil {
			b.strict = b.strict || exclusive.Bool
		}
		all = append(all, b)
	}
	return all
}
