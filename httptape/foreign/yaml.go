package foreign

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// This is the YAML that libyaml, go-yaml and Psych write, which is what cassettes are: block mappings and lists, scalars in all
// five styles, flow lists and mappings, tags, anchors and aliases. What nobody writes into a cassette (directives, merge keys,
// several documents, collections as keys) is an error that names it. A library that reads all of YAML reads a cassette whole,
// and a hundred times slower.

// maxAnchored bounds, in bytes, what of the items that were read is kept, for an alias in a later one may mean it.
const maxAnchored = 64 << 20

// A yamlParser reads one item of a cassette after the other: anchors last.
type yamlParser struct {
	b       []byte
	i       int
	rare    bool // b has line breaks of Unicode
	depth   int
	anchors map[string]*node
	kept    int // bytes of anchors
}

// A yamlError says what is wrong with a text.
type yamlError struct {
	line int // of the text, from 0
	why  string
}

func (e *yamlError) Error() string { return e.why }

func (p *yamlParser) wrong(format string, args ...any) error {
	return &yamlError{line: bytes.Count(p.b[:min(p.i, len(p.b))], []byte("\n")), why: fmt.Sprintf(format, args...)}
}

// parse reads a text that is one block node: a list of one item, of a cassette.
func (p *yamlParser) parse(text []byte) (*node, error) {
	p.b, p.i, p.depth = text, 0, 0
	p.rare = bytes.Contains(text, lineSeparator) || bytes.Contains(text, paragraphSeparator)
	indent := p.nextLine()
	if indent < 0 {
		return nothing, nil
	}
	n, err := p.block(indent)
	if err == nil && p.nextLine() >= 0 {
		err = p.wrong("want a key or the end of the item")
	}
	return n, err
}

// nextLine steps to the next line that says something, and returns how far it is indented, -1 at the end. The parser stands at
// the beginning of a line, or behind a value.
func (p *yamlParser) nextLine() int {
	if p.i > 0 && !p.atBegin() {
		p.lineEnd()
	}
	for p.i < len(p.b) {
		n := 0
		for p.i+n < len(p.b) && p.b[p.i+n] == ' ' {
			n++
		}
		if rest := p.b[p.i+n:]; len(rest) > 0 && !isBreak(rest) && rest[0] != '#' && !blankLine(rest) {
			return n
		}
		p.lineEnd()
	}
	return -1
}

// lineEnd steps behind the end of the line.
func (p *yamlParser) lineEnd() {
	n, width := p.eol(p.b[p.i:])
	p.i += n + width
}

// The line breaks that YAML 1.1, which libyaml and go-yaml write, has beside those of ASCII. They stay what they are when they
// are read.
var lineSeparator, paragraphSeparator = []byte("\u2028"), []byte("\u2029")

// eol returns where the line that b begins with ends, and how long the break there is: 0 at the end of all.
func (p *yamlParser) eol(b []byte) (n, width int) {
	n, width = bytes.IndexByte(b, '\n'), 1
	if n < 0 {
		n, width = len(b), 0
	}
	if p.rare {
		for _, sep := range [][]byte{lineSeparator, paragraphSeparator} {
			if k := bytes.Index(b[:n], sep); k >= 0 {
				n, width = k, len(sep)
			}
		}
	}
	return n, width
}

// breakLen is the length of the line break that b begins with, 0 for none.
func breakLen(b []byte) int {
	switch {
	case len(b) == 0:
	case b[0] == '\n':
		return 1
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return 2
	case b[0] == lineSeparator[0] && (bytes.HasPrefix(b, lineSeparator) || bytes.HasPrefix(b, paragraphSeparator)):
		return len(lineSeparator)
	}
	return 0
}

// isBreak reports whether a line ends where b, which is not empty, begins.
func isBreak(b []byte) bool { return breakLen(b) > 0 || b[0] == '\r' && len(b) == 1 }

// atBegin reports whether the parser stands at the beginning of a line.
func (p *yamlParser) atBegin() bool {
	before := p.b[:p.i]
	return len(before) == 0 || before[len(before)-1] == '\n' ||
		p.rare && (bytes.HasSuffix(before, lineSeparator) || bytes.HasSuffix(before, paragraphSeparator))
}

// blankLine reports whether nothing but white space comes until the line ends.
func blankLine(b []byte) bool {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\r':
		default:
			return breakLen(b[i:]) > 0
		}
	}
	return true
}

// atEnd reports whether the line says nothing more, but for a comment.
func (p *yamlParser) atEnd() bool {
	at := p.i
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t') {
		p.i++
	}
	if p.i == len(p.b) || isBreak(p.b[p.i:]) {
		return true
	}
	return p.b[p.i] == '#' && p.i > at
}

// isDash reports whether an item of a list begins at b.
func isDash(b []byte) bool { return isMark(b, '-') }

// isMark reports whether b begins with a mark and what may stand behind one.
func isMark(b []byte, mark byte) bool {
	return len(b) > 0 && b[0] == mark && (len(b) == 1 || b[1] == ' ' || b[1] == '\t' || b[1] == '\n' || b[1] == '\r')
}

// block reads the list, mapping or scalar that begins on this line, which is indented by so much. The parser stands at the
// beginning of the line.
func (p *yamlParser) block(indent int) (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.wrong("%v", errNested)
	}
	defer func() { p.depth-- }()
	p.i += indent
	return p.here(indent, indent-1)
}

// here reads the node that begins where the parser stands, in the column col; of a scalar, lines that are indented by more than
// parent belong to it.
func (p *yamlParser) here(col, parent int) (*node, error) {
	switch {
	case isDash(p.b[p.i:]):
		return p.list(col)
	case isMark(p.b[p.i:], '?') || p.keyLen() > 0:
		return p.mapping(col)
	}
	return p.value(parent, false)
}

// list reads a list whose dashes stand in the column col. The parser stands at the first.
func (p *yamlParser) list(col int) (*node, error) {
	n := &node{kind: listNode}
	for {
		v, err := p.behind(col)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
		if indent := p.nextLine(); indent != col || !isDash(p.b[p.i+col:]) {
			return n, p.deeper(indent, col)
		}
		p.i += col
	}
}

// deeper is the error for a line that belongs to nothing.
func (p *yamlParser) deeper(indent, col int) error {
	if indent > col {
		return p.wrong("the line is indented by %d, which belongs to nothing", indent)
	}
	return nil
}

// behind reads what stands behind a mark of one byte in the column col: a node that begins on the same line, or on the next.
func (p *yamlParser) behind(col int) (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.wrong("%v", errNested)
	}
	defer func() { p.depth-- }()
	at := p.i
	p.i++
	if p.atEnd() {
		return p.below(col, false)
	}
	return p.here(col+p.i-at, col)
}

// below reads a node that begins on a later line than what it belongs to, which stands in the column col. A list may stand in the
// same column as its key.
func (p *yamlParser) below(col int, ofKey bool) (*node, error) {
	at := p.i
	indent := p.nextLine()
	if indent > col || ofKey && indent == col && isDash(p.b[p.i+indent:]) {
		return p.block(indent)
	}
	p.i = at
	return new(node), nil
}

// mapping reads a mapping whose keys stand in the column col. The parser stands at the first.
func (p *yamlParser) mapping(col int) (*node, error) {
	n := &node{kind: mapNode}
	for {
		key, v, err := p.member(col)
		if err != nil {
			return nil, err
		}
		if key == "<<" {
			return nil, p.wrong("a merge key (<<) is not read here")
		}
		if err := n.add(key, v); err != nil {
			return nil, p.wrong("%v", err)
		}
		indent := p.nextLine()
		if indent != col {
			return n, p.deeper(indent, col)
		}
		if isDash(p.b[p.i+col:]) {
			return n, nil // of a list around the mapping
		}
		p.i += col
	}
}

func (p *yamlParser) member(col int) (key string, v *node, err error) {
	if isMark(p.b[p.i:], '?') {
		return p.longMember(col)
	}
	n := p.keyLen()
	if n == 0 {
		return "", nil, p.wrong("want a key")
	}
	end := p.i + n
	if key, err = p.key(end); err != nil {
		return "", nil, err
	}
	p.i = end + 1 // the colon
	if p.atEnd() {
		v, err = p.below(col, true)
		return key, v, err
	}
	v, err = p.value(col, true)
	return key, v, err
}

// longMember reads a key and its value that stand on lines of their own, each behind a mark: how keys of more than 128 bytes are
// written.
func (p *yamlParser) longMember(col int) (key string, v *node, err error) {
	k, err := p.behind(col)
	if err != nil {
		return "", nil, err
	}
	if k.kind != scalarNode && k.kind != nullNode {
		return "", nil, p.wrong("a collection as a key is not read here")
	}
	at := p.i
	if indent := p.nextLine(); indent != col || !isMark(p.b[p.i+col:], ':') {
		p.i = at
		return k.string(), new(node), nil
	}
	p.i += col
	v, err = p.behind(col)
	return k.string(), v, err
}

// keyLen returns the length of the key that begins here, as it stands, up to its colon; 0 where none does.
func (p *yamlParser) keyLen() int {
	b := p.b[p.i:]
	if len(b) == 0 {
		return 0
	}
	n := 0
	switch b[0] {
	case '"', '\'':
		n = quotedLen(b)
		if n == 0 {
			return 0
		}
		for n < len(b) && b[n] == ' ' {
			n++
		}
		if isMark(b[n:], ':') {
			return n
		}
		return 0
	case '{', '[', '|', '>', '!', '&', '*', '#', '%', '@', '`':
		return 0
	}
	for ; n < len(b); n++ {
		switch b[n] {
		case '\n':
			return 0
		case ':':
			if n > 0 && isMark(b[n:], ':') {
				return n
			}
		case '#':
			if n > 0 && b[n-1] == ' ' {
				return 0
			}
		}
	}
	return 0
}

// quotedLen is the length of the quoted text that b begins with, as it stands, where it ends on the same line; else 0.
func quotedLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] == '\n':
			return 0
		case b[i] == '\\' && b[0] == '"':
			i++
		case b[i] == b[0]:
			if b[0] == '\'' && i+1 < len(b) && b[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	}
	return 0
}

// key reads a key of one line, up to end.
func (p *yamlParser) key(end int) (string, error) {
	switch p.b[p.i] {
	case '"', '\'':
		t, err := p.quoted()
		return string(t), err
	}
	return string(bytes.TrimRight(p.b[p.i:end], " \t")), nil
}

// value reads a scalar, a flow collection or an alias. Lines that are indented by more than parent belong to it. A value of a key
// may begin on the next line, behind its tag or anchor.
func (p *yamlParser) value(parent int, ofKey bool) (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.wrong("%v", errNested)
	}
	defer func() { p.depth-- }()
	tag, anchor := p.properties()
	n, err := p.untagged(parent, ofKey)
	if err != nil {
		return nil, err
	}
	if tag == "!!binary" || tag == "!binary" {
		if n, err = p.binary(n); err != nil {
			return nil, err
		}
	} else if tag != "" && n.kind <= scalarNode {
		n.kind, n.plain = scalarNode, false // a text, whatever it looks like
	}
	return n, p.anchor(anchor, n)
}

func (p *yamlParser) untagged(parent int, ofKey bool) (*node, error) {
	if p.atEnd() {
		return p.below(parent, ofKey)
	}
	switch c := p.b[p.i]; c {
	case '|', '>':
		return p.blockScalar(parent)
	case '"', '\'':
		t, err := p.quoted()
		if err == nil && !p.atEnd() {
			err = p.wrong("something follows the quoted text")
		}
		return &node{kind: scalarNode, text: t}, err
	case '{', '[':
		n, err := p.flow()
		if err == nil && !p.atEnd() {
			err = p.wrong("something follows the %c…%c", c, c+2)
		}
		return n, err
	case '*':
		return p.alias()
	case '%', '@', '`':
		return nil, p.wrong("%q begins no value", c)
	}
	return plainNode(p.plainLines(parent)), nil
}

// plainNode is a scalar without quotes.
func plainNode(t []byte) *node {
	switch string(t) {
	case "", "~", "null", "Null", "NULL":
		return new(node)
	}
	return &node{kind: scalarNode, text: t, plain: true}
}

// properties reads the tag and the anchor of a value.
func (p *yamlParser) properties() (tag, anchor string) {
	for p.i < len(p.b) && (p.b[p.i] == '!' || p.b[p.i] == '&') {
		word := p.word()
		if word[0] == '!' {
			tag = word
		} else {
			anchor = word[1:]
		}
		p.atEnd() // steps over white space
	}
	return tag, anchor
}

// word reads up to white space, or to what ends a value in a flow collection.
func (p *yamlParser) word() string {
	n := bytes.IndexAny(p.b[p.i:], " \t\r\n,]}")
	if n < 0 {
		n = len(p.b) - p.i
	}
	w := string(p.b[p.i : p.i+n])
	p.i += n
	return w
}

// anchor keeps a value for its aliases.
func (p *yamlParser) anchor(name string, n *node) error {
	if name == "" {
		return nil
	}
	if p.kept += n.size(); p.kept > maxAnchored {
		return p.wrong("values with an anchor have more than %d bytes", maxAnchored)
	}
	if p.anchors == nil {
		p.anchors = make(map[string]*node)
	}
	p.anchors[name] = n
	return nil
}

// size is how many bytes n holds, and a little.
func (n *node) size() int {
	total := 64 + len(n.text)
	for i, v := range n.items {
		total += v.size()
		if n.kind == mapNode {
			total += len(n.keys[i])
		}
	}
	return total
}

func (p *yamlParser) alias() (*node, error) {
	name := p.word()[1:]
	n := p.anchors[name]
	if n == nil {
		return nil, p.wrong("nothing is called &%.40s", name)
	}
	if p.kept += n.size(); p.kept > maxAnchored { // an alias in what has an anchor, and so on
		return nil, p.wrong("aliases stand for more than %d bytes", maxAnchored)
	}
	return n, nil
}

// binary decodes a scalar with the tag !!binary.
func (p *yamlParser) binary(n *node) (*node, error) {
	text := bytes.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, n.text)
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	k, err := base64.StdEncoding.Decode(out, text)
	if err != nil || n.kind > scalarNode {
		return nil, p.wrong("!!binary is no base64")
	}
	return &node{kind: scalarNode, text: out[:k]}, nil
}
