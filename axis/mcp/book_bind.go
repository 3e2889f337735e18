package mcp

// bind finds out to which request of the client each notification of the server belongs that names one: by the token of its progress,
// or by its id. Such a one goes out only where that request came.
func (b *Book) bind(t *recordedTalk) {
	var calls map[string][]*bookCall // by token and by id, see named
	if len(t.cancels) > 0 {
		calls = b.names(t)
	}
	for _, c := range t.cancels {
		if m, ok := messageOf(c.payload, b.store); ok {
			if call := ownerOf(calls[spotRequest+" "+idName(member(m.Params, spotRequest))], c.place); call != nil && call.cancelled == 0 {
				call.cancelled = c.place
			}
		}
	}
	for _, l := range t.lines {
		for i := range l.parts {
			p := &l.parts[i]
			if l.text || p.answer || p.ask != nil {
				continue
			}
			m, ok := messageOf(p.payload, b.store)
			if !ok {
				continue
			}
			name, value := named(m)
			if value == nil || name == spotRequest && len(t.asks) > 0 { // a server that asks cancels its own requests
				continue
			}
			if calls == nil {
				calls = b.names(t)
			}
			p.call, p.name = ownerOf(calls[name+" "+string(value)], l.place), name
		}
	}
}

// named is what a notification says of the request that it belongs to; the value is nil where it says nothing.
func named(m *Message) (name string, value []byte) {
	for _, s := range spotsOf(m.Raw) {
		if s.name != spotID {
			return s.name, m.Raw[s.start:s.end]
		}
	}
	return "", nil
}

// names lists the requests of the client by what notifications call them.
func (b *Book) names(t *recordedTalk) map[string][]*bookCall {
	out := make(map[string][]*bookCall)
	for _, c := range t.calls {
		m, ok := messageOf(c.request, b.store)
		if !ok {
			continue
		}
		if token := tokenOf(m.Params); token != nil {
			name := spotToken + " " + string(token)
			out[name] = append(out[name], c)
		}
		for _, spot := range []string{spotSubscription, spotRequest} {
			name := spot + " " + string(m.ID)
			out[name] = append(out[name], c)
		}
	}
	return out
}

// ownerOf is the last of calls that was asked before a place, rather one that was not answered before it.
func ownerOf(calls []*bookCall, place uint64) *bookCall {
	var last, open *bookCall
	for _, c := range calls {
		if c.place >= place {
			break
		}
		last = c
		if c.replied == 0 || c.replied > place {
			open = c
		}
	}
	if open != nil {
		return open
	}
	return last
}
