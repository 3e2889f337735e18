package foreign

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"go.yaml.in/yaml/v3"
)

// maxAliased bounds, in bytes, what aliases stand for: a few lines of them can stand for any amount.
const maxAliased = 64 << 20

// A yamlError says what is wrong with a text, and in which line, from 1.
type yamlError struct {
	line int
	why  string
}

func (e *yamlError) Error() string { return e.why }

var errOldCassette = errors.New("a list at the top: a cassette of before VCR 2 or vcrpy 1; record it again, or migrate it with its own program")

// readYAML reads a cassette in YAML, of which the whole is in memory: an anchor in one item may have its alias in any other. where is
// the line of what is wrong.
func (m *maker) readYAML(src *source, r io.Reader) (where string, err error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxItem+1))
	if err != nil {
		return "", err
	}
	if len(text) > MaxItem {
		return "", fmt.Errorf("it has more than %d bytes, the limit for a cassette in YAML", MaxItem)
	}
	top, err := parseYAML(text)
	if err == nil {
		err = m.yamlTop(src, top)
	}
	if wrong, ok := errors.AsType[*yamlError](err); ok {
		return fmt.Sprintf("line %d", wrong.line), wrong
	}
	return "", err
}

// parseYAML reads a text that is one document; nil for an empty one.
func parseYAML(text []byte) (top *yaml.Node, err error) {
	if err := jsonscan.ValidUTF8(text); err != nil {
		var at *jsonscan.SyntaxError
		errors.As(err, &at)
		return nil, &yamlError{1 + bytes.Count(text[:at.Offset], []byte("\n")), err.Error()}
	}
	defer func() { // the library is not to take the process with it, whatever it is given
		if r := recover(); r != nil {
			top, err = nil, fmt.Errorf("it cannot be read as YAML: %v", r)
		}
	}()
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, placed(err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &yamlError{second.Line, "want one document, got a second one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, placed(err)
	}
	return doc.Content[0], nil
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// placed takes the line out of an error of the library.
func placed(err error) error {
	why := err.Error()
	at := yamlLine.FindStringSubmatch(why)
	line, _ := strconv.Atoi(at[1])
	return &yamlError{max(line, 1), why[len(at[0]):]}
}

// yamlTop reads the mapping at the top: the list, item by item, and what stands beside it.
func (m *maker) yamlTop(src *source, top *yaml.Node) error {
	switch {
	case top == nil:
		return nil
	case top.Kind == yaml.SequenceNode:
		return &yamlError{top.Line, errOldCassette.Error()}
	case top.Kind != yaml.MappingNode:
		return nil // nobody has found a list then
	}
	c := conversion{done: make(map[*yaml.Node]*node)}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if seen[key.Value] {
			return &yamlError{key.Line, fmt.Sprintf("the key %.40q stands twice", key.Value)}
		}
		seen[key.Value] = true
		if slices.Contains(m.of.lists, key.Value) && value.ShortTag() != "!!null" {
			if err := m.yamlList(src, &c, key, value); err != nil {
				return err
			}
			continue
		}
		v, err := c.node(value, 0)
		if err != nil {
			return err
		}
		m.member(key.Value, v)
	}
	return nil
}

func (m *maker) yamlList(src *source, c *conversion, key, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return &yamlError{key.Line, key.Value + " is no list of items"}
	}
	m.member(key.Value, nothing)
	for _, item := range list.Content {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		v, err := c.node(item, 0)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("line %d", item.Line)
		if err := m.item(v, where); err != nil {
			return src.wrong(where, err)
		}
	}
	return nil
}

// A conversion makes nodes of what the library read.
type conversion struct {
	done    map[*yaml.Node]*node // of those with an anchor
	aliased int                  // bytes that aliases stand for
}

func (c *conversion) node(y *yaml.Node, depth int) (n *node, err error) {
	if depth > maxNesting {
		return nil, &yamlError{y.Line, errNested.Error()}
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
		c.done[y] = n
	}
	return n, err
}

func (c *conversion) list(y *yaml.Node, depth int) (*node, error) {
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

func (c *conversion) mapping(y *yaml.Node, depth int) (*node, error) {
	n := &node{kind: mapNode}
	for i := 0; i+1 < len(y.Content); i += 2 {
		wrong := func(format string, args ...any) error {
			return &yamlError{y.Content[i].Line, fmt.Sprintf(format, args...)}
		}
		key, err := c.node(y.Content[i], depth+1)
		switch {
		case err != nil:
			return nil, err
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
			return nil, &yamlError{y.Line, "!!binary is no base64"}
		}
		return &node{kind: scalarNode, text: b}, nil
	case !tagged && y.Tag == "!!null":
		return new(node), nil
	}
	return &node{kind: scalarNode, text: []byte(y.Value)}, nil
}

func (c *conversion) alias(y *yaml.Node) (*node, error) {
	n := c.done[y.Alias]
	if n == nil {
		return nil, &yamlError{y.Line, fmt.Sprintf("*%.40s is within what it means", y.Value)}
	}
	if c.aliased += n.size(); c.aliased > maxAliased { // an alias in what has an anchor, and so on
		return nil, &yamlError{y.Line, fmt.Sprintf("aliases stand for more than %d bytes", maxAliased)}
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
