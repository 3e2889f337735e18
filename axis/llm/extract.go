package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// usageAt returns what finds the usage of an answer at one of some paths, with dots: see lastObject.
func usageAt(paths ...string) func(answer []byte) []byte {
	split := make([][]string, len(paths))
	for i, path := range paths {
		split[i] = strings.Split(path, ".")
	}
	return func(answer []byte) []byte { return lastObject(answer, split...) }
}

// lastObject returns the last JSON object that stands at one of the paths in one of the texts of an answer, as it stood;
// nil for none. In one text an earlier path goes before a later one.
func lastObject(body []byte, paths ...[]string) []byte {
	var found []byte
	for text := range answers(body) {
		for _, path := range paths {
			if !bytes.Contains(text, []byte(`"`+path[len(path)-1]+`"`)) {
				continue
			}
			if at := objectAt(text, path...); at != nil {
				found = at
				break
			}
		}
	}
	return found
}

// objectAt returns the JSON object at a path of keys, as it stood; nil where there is none.
func objectAt(text []byte, path ...string) []byte {
	for _, key := range path {
		var value []byte
		whole := members(text, func(name, v []byte) {
			if string(name) == key {
				value = v
			}
		})
		if !whole {
			return nil
		}
		text = value
	}
	if !isObject(text) {
		return nil
	}
	return text
}

// pickNumbers returns an object of those keys of an object that hold numbers; nil for none.
func pickNumbers(text []byte, keys ...string) []byte {
	if !containsAny(text, keys) {
		return nil
	}
	picked := make(map[string]json.RawMessage)
	whole := members(text, func(key, value []byte) {
		if slices.Contains(keys, string(key)) && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			picked[string(key)] = value
		}
	})
	if !whole || len(picked) == 0 {
		return nil
	}
	return marshal(picked)
}

// containsAny reports whether one of the keys stands in a text.
func containsAny(text []byte, keys []string) bool {
	for _, key := range keys {
		if bytes.Contains(text, []byte(`"`+key+`"`)) {
			return true
		}
	}
	return false
}

// mergeObjects returns an object with the keys of all parts, sorted; a later part's value wins unless it is null.
func mergeObjects(parts ...[]byte) []byte {
	merged := make(map[string]json.RawMessage)
	for _, part := range parts {
		var object map[string]json.RawMessage
		if json.Unmarshal(part, &object) != nil {
			continue
		}
		for key, value := range object {
			if _, known := merged[key]; !known || !bytes.Equal(value, []byte("null")) {
				merged[key] = value
			}
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return marshal(merged)
}

// marshal returns v as JSON that leaves <, > and & alone; nil where v has no JSON form.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
