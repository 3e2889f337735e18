package files

import (
	"encoding/json"
	"errors"
	"strings"
)

// attrPrefix begins the names of the extended attributes that are kept. Those of an overlay itself are none of a file's.
const (
	attrPrefix    = "user."
	overlayPrefix = "user.overlay."
)

// An attrSet is the extended attributes of one file; nil is the value of one that holds a secret.
type attrSet map[string][]byte

// encode returns the set as Entry.Attrs has it. A value that holds a secret is not kept.
func (a attrSet) encode(s Scrubber) string {
	if len(a) == 0 {
		return ""
	}
	if s != nil {
		for name, value := range a {
			if _, found := s.Bytes([]byte(name + "\n" + string(value))); found {
				a[name] = nil
			}
		}
	}
	b, err := json.Marshal(map[string][]byte(a)) // sorted by name; names that are no UTF-8 are not told apart
	if err != nil {
		return "" // strings and bytes always have a JSON form
	}
	return string(b)
}

var errAttrs = errors.New("xattrs is no object of names user.* with values in base64")

// parseAttrs reads what encode wrote, and nothing else.
func parseAttrs(text string) (attrSet, error) {
	if text == "" {
		return nil, nil
	}
	var a attrSet
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.encode(nil) != text {
		return nil, errAttrs
	}
	for name := range a {
		if !isKeptAttr(name) {
			return nil, errAttrs
		}
	}
	return a, nil
}

// isKeptAttr reports whether an attribute of this name is kept.
func isKeptAttr(name string) bool {
	return strings.HasPrefix(name, attrPrefix) && len(name) > len(attrPrefix) && !strings.HasPrefix(name, overlayPrefix)
}
