package llm

import (
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// The functions below edit a tree in place: Classify parsed it for itself, so nobody else reads it. All of them leave a
// value alone that is not of the kind they are for.

// get returns the value under key, nil where there is none.
func get(v *canonjson.Value, key string) *canonjson.Value {
	for i := range v.Members {
		if v.Members[i].Key == key {
			return &v.Members[i].Value
		}
	}
	return nil
}

// at applies edit to the value under key, where there is one.
func at(v *canonjson.Value, key string, edit func(*canonjson.Value)) {
	if found := get(v, key); found != nil {
		edit(found)
	}
}

// each applies edit to every element of an array.
func each(v *canonjson.Value, edit func(*canonjson.Value)) {
	for i := range v.Elems {
		edit(&v.Elems[i])
	}
}

// drop takes keys out of an object.
func drop(v *canonjson.Value, keys ...string) {
	for i := range v.Members {
		if slices.Contains(keys, v.Members[i].Key) {
			v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return slices.Contains(keys, m.Key) })
			return
		}
	}
}

// dropElems takes the elements out of an array that are cut.
func dropElems(v *canonjson.Value, cut func(*canonjson.Value) bool) {
	v.Elems = slices.DeleteFunc(v.Elems, func(e canonjson.Value) bool { return cut(&e) })
}

// rename gives the keys of an object the names that names has for them. Where both spellings stand, neither is changed.
func rename(v *canonjson.Value, names map[string]string) {
	for i := range v.Members {
		if name, ok := names[v.Members[i].Key]; ok && get(v, name) == nil {
			v.Members[i].Key = name
		}
	}
}

// listed makes a list of one text block of a bare string, for which it is short.
func listed(v *canonjson.Value, kind string) {
	if v.Kind == canonjson.String {
		*v = array(textBlock(kind, *v))
	}
}

// object builds an object.
func object(members ...canonjson.Member) canonjson.Value {
	return canonjson.Value{Kind: canonjson.Object, Members: members}
}

// field is a member of an object.
func field(key string, value canonjson.Value) canonjson.Member {
	return canonjson.Member{Key: key, Value: value}
}

// array builds an array.
func array(elems ...canonjson.Value) canonjson.Value {
	return canonjson.Value{Kind: canonjson.Array, Elems: elems}
}

// text builds a string.
func text(s string) canonjson.Value { return canonjson.Value{Kind: canonjson.String, Str: s} }

// textBlock builds {"type":kind,"text":s}.
func textBlock(kind string, s canonjson.Value) canonjson.Value {
	return object(field("type", text(kind)), field("text", s))
}

// member returns the string under key, "" where there is none.
func member(v *canonjson.Value, key string) string {
	if s := get(v, key); s != nil && s.Kind == canonjson.String {
		return s.Str
	}
	return ""
}

// list returns the array under key, nil where there is none.
func list(v *canonjson.Value, key string) *canonjson.Value {
	if a := get(v, key); a != nil && a.Kind == canonjson.Array {
		return a
	}
	return nil
}

// firstRole returns the index of the first element whose role is one of roles, -1 for none.
func firstRole(messages *canonjson.Value, roles ...string) int {
	return slices.IndexFunc(messages.Elems, func(m canonjson.Value) bool { return slices.Contains(roles, member(&m, "role")) })
}

// withRole returns the indices of the messages whose role is one of roles.
func withRole(messages *canonjson.Value, roles ...string) []int {
	var found []int
	for i := range messages.Elems {
		if slices.Contains(roles, member(&messages.Elems[i], "role")) {
			found = append(found, i)
		}
	}
	return found
}

// pairs numbers the ids that pair calls of tools with their results by their first appearance in a conversation: which
// call a result belongs to counts, what a server or an SDK made up to say so does not. The numbers of a conversation's
// beginning stay as it grows.
type pairs map[string]int

// number replaces the id under key by its number.
func (p *pairs) number(v *canonjson.Value, key string) {
	id := get(v, key)
	if id == nil || id.Kind != canonjson.String || id.Str == "" {
		return
	}
	if *p == nil {
		*p = make(pairs)
	}
	if (*p)[id.Str] == 0 {
		(*p)[id.Str] = len(*p) + 1
	}
	id.Str = "#" + strconv.Itoa((*p)[id.Str])
}
