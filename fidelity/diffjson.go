package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// An Op says what happened to a value.
type Op string

// The operations of a Change.
const (
	Changed Op = "changed"
	Added   Op = "added"
	Removed Op = "removed"
)

// A Change is one difference between two bodies.
type Change struct {
	// Path of the value, such as messages[2].content[0].text, counted in the new body where the value was changed or
	// added. Empty for the whole body, "line 3" in a text that is not JSON, "byte 17" in one that is not text.
	Path string `json:"path"`
	Op   Op     `json:"op"`
	Was  string `json:"was,omitempty"` // JSON, shortened to the words that differ; empty for Added
	Now  string `json:"now,omitempty"` // the same; empty for Removed
}

// maxDepth bounds how deep values are compared structurally. Deeper ones are compared as a whole.
const maxDepth = 64

// DiffJSON returns where two JSON bodies differ, in the order of the old one's keys (sorted) and elements. Elements of a
// list are aligned, so one inserted message is one Change; text is compared word by word. Bodies that mean the same
// JSON have no change. When one of them is not JSON the first line that differs is the only Change.
func DiffJSON(a, b []byte) []Change {
	if bytes.Equal(a, b) {
		return nil
	}
	va, errA := decodeJSON(a)
	vb, errB := decodeJSON(b)
	if errA != nil || errB != nil {
		return diffText(a, b)
	}
	var d jsonDiff
	d.value("", va, vb, 0)
	return d.changes
}

// decodeJSON reads one JSON value that is all of b. Numbers stay as they were written.
func decodeJSON(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

// jsonDiff collects the changes between two values.
type jsonDiff struct{ changes []Change }

func (d *jsonDiff) add(path string, op Op, was, now string) {
	d.changes = append(d.changes, Change{Path: path, Op: op, Was: was, Now: now})
}

func (d *jsonDiff) value(path string, a, b any, depth int) {
	if depth < maxDepth {
		switch a := a.(type) {
		case map[string]any:
			if b, ok := b.(map[string]any); ok {
				d.object(path, a, b, depth+1)
				return
			}
		case []any:
			if b, ok := b.([]any); ok {
				d.list(path, a, b, depth+1)
				return
			}
		}
	}
	d.scalar(path, a, b)
}

// scalar compares two values that are not both objects or both lists.
func (d *jsonDiff) scalar(path string, a, b any) {
	as, aText := a.(string)
	bs, bText := b.(string)
	if aText && bText {
		if as != bs {
			was, now := shortenPair(as, bs)
			d.add(path, Changed, was, now)
		}
		return
	}
	if !sameScalar(a, b) {
		d.add(path, Changed, shortJSON(a), shortJSON(b))
	}
}

// sameScalar reports whether a and b mean the same JSON. 1 and 1.0 do.
func sameScalar(a, b any) bool {
	an, aNum := a.(json.Number)
	bn, bNum := b.(json.Number)
	if aNum && bNum && an != bn {
		x, errX := an.Float64()
		y, errY := bn.Float64()
		return errX == nil && errY == nil && x == y
	}
	return aNum == bNum && encodeJSON(a) == encodeJSON(b)
}

func (d *jsonDiff) object(path string, a, b map[string]any, depth int) {
	keys := make([]string, 0, len(a)+len(b))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		va, inA := a[k]
		vb, inB := b[k]
		at := joinKey(path, k)
		switch {
		case !inB:
			d.add(at, Removed, shortJSON(va), "")
		case !inA:
			d.add(at, Added, "", shortJSON(vb))
		default:
			d.value(at, va, vb, depth)
		}
	}
}

// list compares two lists. Equal elements hold their places; what lies between two of them is paired by likeness.
func (d *jsonDiff) list(path string, a, b []any, depth int) {
	ea, eb := encodeAll(a), encodeAll(b)
	i, j := 0, 0
	for _, m := range append(align(ea, eb), match{len(a), len(b)}) {
		pairs := append(pairAlike(a[i:m.i], b[j:m.j], ea[i:m.i], eb[j:m.j]), match{m.i - i, m.j - j})
		x, y := i, j
		for _, p := range pairs {
			for ; x < i+p.i; x++ {
				d.add(path+"["+strconv.Itoa(x)+"]", Removed, shortJSON(a[x]), "")
			}
			for ; y < j+p.j; y++ {
				d.add(path+"["+strconv.Itoa(y)+"]", Added, "", shortJSON(b[y]))
			}
			if x < m.i && y < m.j {
				d.value(path+"["+strconv.Itoa(y)+"]", a[x], b[y], depth)
				x, y = x+1, y+1
			}
		}
		i, j = m.i+1, m.j+1
	}
}

func encodeAll(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = encodeJSON(v)
	}
	return out
}
