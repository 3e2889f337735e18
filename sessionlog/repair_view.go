package sessionlog

// objects gives the objects of a list, each with the string that its key holds ("" for none) and as it stands.
func (v *eventView) objects(at field, key string, each func(id string, raw []byte)) {
	if !v.begin(at, "a list of objects", func(c byte) bool { return c == '[' }) {
		return
	}
	list := v.s // the scanner of an element is another
	for list.Begin('['); list.More(']'); {
		if list.Peek() != '{' {
			v.wrong(at, "want a list of objects, got %s", shortened(v.raw[at]))
			return
		}
		raw := list.Raw()
		id, ok := v.member(raw, key)
		if !ok {
			v.wrong(at, "want objects that have one string %q, got %s", key, shortened(raw))
			return
		}
		each(id, raw)
	}
}

// member returns the string that key holds in an object, "" where it is absent or null. It is not ok where the key stands twice
// or holds something else.
func (v *eventView) member(object []byte, key string) (text string, ok bool) {
	s := &v.s
	s.Reset(object)
	seen := false
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != key {
			s.Skip()
			continue
		}
		if seen {
			return "", false
		}
		seen = true
		switch s.Peek() {
		case '"':
			text = string(s.TextBytes())
		case 'n':
			s.Skip()
		default:
			return "", false
		}
	}
	return text, s.Err() == nil
}

// calls gives the calls of an answer: those of its message, or, in the form of newer producers, its own.
func (v *eventView) calls(each func(id string, raw []byte)) {
	v.objects(fieldToolCalls, "id", each)
	if !v.begin(fieldMessage, "an object", func(c byte) bool { return c == '{' }) {
		return
	}
	s := v.s
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "tool_calls" || s.Peek() == 'n' {
			s.Skip()
			continue
		}
		inner := eventView{kind: v.kind}
		inner.there, inner.raw[fieldToolCalls] = 1<<fieldToolCalls, s.Raw()
		if inner.objects(fieldToolCalls, "id", each); inner.fail != nil && v.fail == nil {
			v.fail = inner.fail
		}
	}
}
