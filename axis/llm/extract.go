package llm

import (
	"bytes"
	"encoding/json"
)

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
		var object map[string]json.RawMessage
		if json.Unmarshal(text, &object) != nil {
			return nil
		}
		text = object[key]
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	return text
}

// pickNumbers returns an object of those keys of an object that hold numbers; nil for none.
func pickNumbers(text []byte, keys ...string) []byte {
	if !containsAny(text, keys) {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return nil
	}
	picked := make(map[string]json.RawMessage)
	for _, key := range keys {
		if value := object[key]; len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			picked[key] = value
		}
	}
	if len(picked) == 0 {
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
