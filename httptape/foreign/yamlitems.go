package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A yamlFile cuts a cassette into the items of its list, by how its lines are indented: no line of an item is indented as little
// as the dash of the next.
type yamlFile struct {
	lines *jsonscan.Lines
	parse yamlParser
	line  []byte // the one that comes next; nil at the end
	bytes.Buffer
}

func newYAMLFile(r io.Reader) *yamlFile { return &yamlFile{lines: jsonscan.NewLines(r, MaxItem)} }

// next reads the next line.
func (f *yamlFile) next() error {
	line, err := f.lines.Next()
	if errors.Is(err, io.EOF) {
		f.line = nil
		return nil
	}
	if err == nil {
		err = jsonscan.ValidUTF8(line)
	}
	f.line = line
	if f.lines.Line() == 1 {
		f.line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return err
}

func (f *yamlFile) where() string { return fmt.Sprintf("line %d", f.lines.Line()) }

// read reads the file for m. where is the line of what is wrong.
func (f *yamlFile) read(m *maker) (where string, err error) {
	if err := f.next(); err != nil {
		return f.where(), err
	}
	for f.line != nil {
		switch {
		case blankLine(f.line), f.line[0] == '#', bytes.HasPrefix(f.line, []byte("...")):
			err = f.next()
		case bytes.HasPrefix(f.line, []byte("---")) && blankLine(f.line[3:]):
			err = f.next()
		case isDash(f.line):
			err = errOldCassette
		case f.line[0] == '%' || f.line[0] == ' ' || f.line[0] == '\t':
			err = errors.New("want a key at the beginning of the line")
		default:
			if key, ok := listKey(f.line); ok && slices.Contains(m.of.lists, key) {
				where, err = f.list(m)
			} else {
				where, err = f.member(m)
			}
		}
		if err != nil {
			if where == "" {
				where = f.where()
			}
			return where, err
		}
	}
	return "", nil
}

var errOldCassette = errors.New("a list at the top: a cassette of before VCR 2 or vcrpy 1; record it again, or migrate it with its own program")

// listKey returns the key that a line holds, and nothing else.
func listKey(line []byte) (string, bool) {
	key, rest, ok := bytes.Cut(line, []byte(":"))
	return string(key), ok && (blankLine(rest) || bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte("#")))
}

// member reads a key at the top and its value.
func (f *yamlFile) member(m *maker) (where string, err error) {
	first := f.lines.Line()
	n, err := f.gather(first, func() bool { return f.line[0] != ' ' && f.line[0] != '\t' && !blankLine(f.line) && !isDash(f.line) })
	if err != nil {
		return f.whereOf(err, first), err
	}
	for i, key := range n.keys {
		if v := n.items[i]; slices.Contains(m.of.lists, key) && (v.kind == mapNode || v.kind == scalarNode || len(v.items) > 0) {
			return fmt.Sprintf("line %d", first), fmt.Errorf("%s is no list of items, one a dash", key)
		}
		m.member(key, n.items[i])
	}
	return "", nil
}

// gather reads the line that is there and those behind it up to one that ends says begins something else, and parses them.
func (f *yamlFile) gather(first int, ends func() bool) (*node, error) {
	f.Reset()
	for {
		if f.Len()+len(f.line) > MaxItem {
			return nil, fmt.Errorf("the item that begins in line %d has more than %d bytes, the limit", first, MaxItem)
		}
		f.Write(f.line)
		if err := f.next(); err != nil {
			return nil, err
		}
		if f.line == nil || ends() {
			break
		}
	}
	n, err := f.parse.parse(f.Bytes())
	if f.Cap() > keepBuffer {
		f.Buffer = bytes.Buffer{}
	}
	return n, err
}

// whereOf is where an error of a text is that begins in the line first.
func (f *yamlFile) whereOf(err error, first int) string {
	var y *yamlError
	if errors.As(err, &y) {
		return fmt.Sprintf("line %d", first+y.line)
	}
	return f.where()
}

// list reads the items of a list, behind its key.
func (f *yamlFile) list(m *maker) (where string, err error) {
	if err := f.next(); err != nil {
		return "", err
	}
	for f.line != nil && (blankLine(f.line) || f.line[0] == '#') {
		if err := f.next(); err != nil {
			return "", err
		}
	}
	col := dashAt(f.line)
	for col >= 0 && f.line != nil && dashAt(f.line) == col {
		first := f.lines.Line()
		n, err := f.gather(first, func() bool { return f.begins(col) })
		if err != nil {
			return f.whereOf(err, first), err
		}
		if n.kind != listNode || len(n.items) != 1 {
			return fmt.Sprintf("line %d", first), errors.New("want an item of the list")
		}
		where := fmt.Sprintf("line %d", first)
		if err := m.item(n.items[0], where); err != nil {
			return where, err
		}
	}
	return "", nil
}

// dashAt is the column of the dash that a line begins with, -1 for none.
func dashAt(line []byte) int {
	n := len(line) - len(bytes.TrimLeft(line, " "))
	if isDash(line[n:]) && !strings.HasPrefix(string(line[n:]), "---") {
		return n
	}
	return -1
}

// begins reports whether the line that comes is indented too little for an item whose dash stands in the column col. One that says
// nothing is not.
func (f *yamlFile) begins(col int) bool {
	n := len(f.line) - len(bytes.TrimLeft(f.line, " "))
	return n <= col && n < len(f.line) && !blankLine(f.line[n:]) && f.line[n] != '#'
}

// keepBuffer is the largest buffer, in bytes, that is kept for the next item: one huge item must not stay.
const keepBuffer = 4 << 20
