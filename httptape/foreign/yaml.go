package foreign

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"go.yaml.in/yaml/v3"
)

// maxAnchored bounds, in bytes, what of the items that were read is kept, for an alias in a later one may mean it.
const maxAnchored = 64 << 20

// A yamlParser reads one item of a cassette after the other: anchors last.
type yamlParser struct {
	anchors map[string]*node
	kept    int // bytes of anchors and aliases
}

// A yamlError says what is wrong with a text.
type yamlError struct {
	line int // of the text, from 0
	why  string
}

func (e *yamlError) Error() string { return e.why }

// parse reads a text that is one block node: a list of one item, or a member of the mapping at the top.
func (p *yamlParser) parse(text []byte) (n *node, err error) {
	before := p.earlier(text)
	defer func() { // the library is not to take the process with it, whatever it is given
		if r := recover(); r != nil {
			n, err = nil, fmt.Errorf("it cannot be read as YAML: %v", r)
		}
	}()
	var doc, second yaml.Node
	dec := yaml.NewDecoder(io.MultiReader(strings.NewReader(before.text), bytes.NewReader(text)))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nothing, nil
	} else if err != nil {
		return nil, placed(err, len(before.names))
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &yamlError{second.Line - 1, "want one document, got a second one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, placed(err, len(before.names))
	}
	c := conversion{p, make(map[*yaml.Node]*node)}
	top := doc.Content[0]
	for i, name := range before.names {
		c.done[top.Content[i]] = p.anchors[name]
	}
	top.Content = top.Content[len(before.names):]
	return c.node(top, 0)
}

// beforehand are items of a list that are put before an item, one a line, so that its aliases mean something.
type beforehand struct {
	names []string
	text  string
}

var aliasLike = regexp.MustCompile(`\*([^\s,\[\]{}]+)`)

// earlier are the anchors of earlier items that this one may mean.
func (p *yamlParser) earlier(text []byte) (b beforehand) {
	col := dashAt(text)
	if len(p.anchors) == 0 || col < 0 {
		return b
	}
	seen := make(map[string]bool)
	for _, m := range aliasLike.FindAllSubmatch(text, -1) {
		name := string(m[1])
		if p.anchors[name] == nil || seen[name] {
			continue
		}
		seen[name] = true
		b.names = append(b.names, name)
		b.text += strings.Repeat(" ", col) + "- &" + name + " x\n"
	}
	return b
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// placed takes the line out of an error of the library; before are lines that are not of the text.
func placed(err error, before int) error {
	why := err.Error()
	m := yamlLine.FindStringSubmatch(why)
	line, _ := strconv.Atoi(m[1])
	return &yamlError{max(line-1-before, 0), why[len(m[0]):]}
}

// A conversion makes nodes of what the library read.
type conversion struct {
	*yamlParser
	done map[*yaml.Node]*node // of those with an anchor
}

func (c conversion) node(y *yaml.Node, depth int) (n *node, err error) {
	if depth > maxNesting {
		return nil, &yamlError{y.Line - 1, errNested.Error()}
	}
	switch y.Kind {
	case yaml.AliasNode:
		return c.alias(y)
	case yaml.SequenceNode:
		n, err = c.list(y, depth)
	case yaml.MappingNode:
		n, err = c.mapping(y, depth)
	default:
		n, err = scalar(y)
	}
	if err == nil && y.Anchor != "" {
		err = c.anchor(y, n)
	}
	return n, err
}

func (c conversion) list(y *yaml.Node, depth int) (*node, error) {
	n := &node{kind: listNode}
	for _, item := range y.Content {
		v, err := c.node(item, depth+1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	return n, nil
}

func (c conversion) mapping(y *yaml.Node, depth int) (*node, error) {
	n := &node{kind: mapNode}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, err := c.node(y.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		wrong := func(format string, args ...any) error {
			return &yamlError{y.Content[i].Line - 1, fmt.Sprintf(format, args...)}
		}
		switch {
		case key.kind != scalarNode && key.kind != nullNode:
			return nil, wrong("a collection as a key is not read here")
		case y.Content[i].ShortTag() == "!!merge":
			return nil, wrong("a merge key (<<) is not read here")
		}
		v, err := c.node(y.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if err := n.add(key.string(), v); err != nil {
			return nil, wrong("%v", err)
		}
	}
	return n, nil
}

// scalar is a text, whatever it looks like; null and nothing are a null where they stand without quotes and without a tag.
func scalar(y *yaml.Node) (*node, error) {
	switch tagged := y.Style&yaml.TaggedStyle != 0; {
	case y.Tag == "!!binary" || y.Tag == "!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(y.Value), ""))
		if err != nil {
			return nil, &yamlError{y.Line - 1, "!!binary is no base64"}
		}
		return &node{kind: scalarNode, text: b}, nil
	case !tagged && y.Tag == "!!null":
		return new(node), nil
	}
	return &node{kind: scalarNode, text: []byte(y.Value)}, nil
}

// anchor keeps a value for its aliases.
func (c conversion) anchor(y *yaml.Node, n *node) error {
	if c.kept += n.size(); c.kept > maxAnchored {
		return &yamlError{y.Line - 1, fmt.Sprintf("values with an anchor have more than %d bytes", maxAnchored)}
	}
	if c.anchors == nil {
		c.anchors = make(map[string]*node)
	}
	c.anchors[y.Anchor], c.done[y] = n, n
	return nil
}

func (c conversion) alias(y *yaml.Node) (*node, error) {
	n := c.done[y.Alias]
	if n == nil {
		return nil, &yamlError{y.Line - 1, fmt.Sprintf("*%.40s is within what it means", y.Value)}
	}
	if c.kept += n.size(); c.kept > maxAnchored { // an alias in what has an anchor, and so on
		return nil, &yamlError{y.Line - 1, fmt.Sprintf("aliases stand for more than %d bytes", maxAnchored)}
	}
	return n, nil
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

// blankLine reports whether a line is nothing but white space.
func blankLine(b []byte) bool { return len(bytes.TrimLeft(b, " \t\r\n")) == 0 }

// isDash reports whether an item of a list begins at b.
func isDash(b []byte) bool {
	return len(b) > 0 && b[0] == '-' && (len(b) == 1 || strings.IndexByte(" \t\r\n", b[1]) >= 0)
}
