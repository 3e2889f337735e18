package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// maxParts is how many values a key may be made of, each counted as often as it stands there: hashing meets it as often.
const maxParts = 1 << 20

// shallow refuses a key that nests too deep to be hashed, or is made of too many values: hashing a tuple or a struct descends as far as
// they do.
func shallow(v starlark.Value) error {
	switch v.(type) {
	case starlark.Tuple, *starlarkstruct.Struct:
		left := maxParts
		return countParts(v, 0, &left)
	}
	return nil
}

func countParts(v starlark.Value, depth int, left *int) error {
	if *left--; *left < 0 {
		return &LimitError{Limit: "depth", What: "a key of more values", Value: fmt.Sprint(maxParts)}
	}
	if depth > maxDepth {
		return tooDeep()
	}
	switch v := v.(type) {
	case starlark.Tuple:
		for _, x := range v {
			if err := countParts(x, depth+1, left); err != nil {
				return err
			}
		}
	case *starlarkstruct.Struct:
		for _, x := range fields(v) {
			if err := countParts(x, depth+1, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// shallowKeys looks at what a set or a dict is about to be made of: keys, or pairs that begin with one.
func shallowKeys(v starlark.Value) error {
	list, ok := v.(starlark.Iterable)
	if _, dict := v.(*starlark.Dict); dict || !ok {
		return nil // its keys have been hashed
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
