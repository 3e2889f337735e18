package script

import (
	"fmt"
	"unsafe"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// maxParts is how many values a key may be made of, each counted as often as it stands there: hashing meets it as often.
const maxParts = 1 << 20

// shallow refuses a key that nests too deep to be hashed: hashing a tuple or a struct descends as far as they do.
func shallow(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.Tuple:
		for _, x := range v {
			if holdsParts(x) {
				return measureKey(v)
			}
		}
	case *starlarkstruct.Struct:
		return measureKey(v)
	}
	return nil
}

func holdsParts(v starlark.Value) bool {
	switch v.(type) {
	case starlark.Tuple, *starlarkstruct.Struct:
		return true
	}
	return false
}

func measureKey(v starlark.Value) error {
	m := measurer{seen: map[part]int{}}
	if n := m.parts(v, 0); m.deep {
		return tooDeep()
	} else if n > maxParts {
		return &LimitError{Limit: "depth", What: "a key of more values", Value: fmt.Sprint(maxParts)}
	}
	return nil
}

// measurer counts the parts of a key. What stands there twice is looked at once.
type measurer struct {
	seen map[part]int
	deep bool
}

// part is a tuple or a struct: a tuple's slice may share its elements and not its length.
type part struct {
	at     unsafe.Pointer
	length int
}

func (m *measurer) parts(v starlark.Value, depth int) int {
	if depth > maxDepth {
		m.deep = true
	}
	if m.deep {
		return 0
	}
	switch v := v.(type) {
	case starlark.Tuple:
		if len(v) == 0 {
			return 1
		}
		return m.once(part{unsafe.Pointer(unsafe.SliceData(v)), len(v)}, func() (n int) {
			for _, x := range v {
				n = min(n+m.parts(x, depth+1), maxParts+1)
			}
			return n
		})
	case *starlarkstruct.Struct:
		return m.once(part{unsafe.Pointer(v), -1}, func() (n int) {
			for _, name := range v.AttrNames() {
				if x, err := v.Attr(name); err == nil {
					n = min(n+m.parts(x, depth+1), maxParts+1)
				}
			}
			return n + 1
		})
	}
	return 1
}

func (m *measurer) once(at part, count func() int) int {
	if n, ok := m.seen[at]; ok {
		return n
	}
	n := count()
	m.seen[at] = n
	return n
}

// shallowKeys looks at what a set or a dict is about to be made of: keys, or pairs that begin with one.
func shallowKeys(list starlark.Iterable) error {
	if _, dict := list.(*starlark.Dict); dict {
		return nil // they have been hashed
	}
	for v := range starlark.Elements(list) {
		if err := shallow(v); err != nil {
			return err
		}
		pair, ok := v.(starlark.Indexable)
		if _, text := v.(starlark.String); !ok || text || pair.Len() == 0 {
			continue
		}
		if err := shallow(pair.Index(0)); err != nil {
			return err
		}
	}
	return nil
}
