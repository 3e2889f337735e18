package foreign

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"go.yaml.in/yaml/v3"
)

// maxAliased bounds, in bytes, what aliases stand for: a few lines of them can stand for any amount.
const maxAliased = 64 << 20

// inLine is the error for what is wrong in a line, from 1.
func inLine(line int, format string, args ...any) error {
	return &ReadError{Where: fmt.Sprintf("line %d", line), Err: fmt.Errorf(format, args...)}
}

var errOldCassette = errors.New("a list at the top: a cassette of before VCR 2 or vcrpy 1; record it again, or migrate it with its own program")

// parseYAML reads a text that is one document; an empty one is a null. An anchor in one item may have its alias in any other.
func parseYAML(text []byte) (top *node, err error) {
	if err := jsonscan.ValidUTF8(text); err != nil {
		var at *jsonscan.SyntaxError
		errors.As(err, &at)
		return nil, inLine(1+bytes.Count(text[:at.Offset], []byte("\n")), "%w", err)
	}
	defer func() { // the library is not to take the process with it, whatever it is given
		if r := recover(); r != nil {
			top, err = nil, &ReadError{Err: fmt.Errorf("it cannot be read as YAML: %v", r)}
		}
	}()
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nothing, nil
	} else if err != nil {
		return nil, placed(err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, inLine(second.Line, "want one document, got a second one")
	} else if !errors.Is(err, io.EOF) {
		return nil, placed(err)
	}
	c := conversion{done: make(map[*yaml.Node]*node)}
	return c.node(doc.Content[0], 0)
}

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// placed takes the line out of an error of the library.
func placed(err error) error {
	why := err.Error()
	at := yamlLine.FindStringSubmatch(why)
	line, _ := strconv.Atoi(at[1])
	return inLine(max(line, 1), "%s", why[len(at[0]):])
}

// A conversion makes nodes of what the library read.
type conversion struct {
	done    map[*yaml.Node]*node // of those with an anchor
	aliased int                  // bytes that aliases stand for
}

func (c *conversion) node(y *yaml.Node, depth int) (n *node, err error) {
	if depth > maxNesting {
		return nil, inLine(y.Line, "%w", errNested)
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
	if err != nil {
		return nil, err
	}
	n.line = y.Line
	if y.Anchor != "" {
		c.done[y] = n
	}
	return n, nil
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
			return inLine(y.Content[i].Line, format, args...)
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
			return nil, inLine(y.Line, "!!binary is no base64")
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
		return nil, inLine(y.Line, "*%.40s is within what it means", y.Value)
	}
	if c.aliased += n.size(); c.aliased > maxAliased { // an alias in what has an anchor, and so on
		return nil, inLine(y.Line, "aliases stand for more than %d bytes", maxAliased)
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
