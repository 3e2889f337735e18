package scrub

// A Taken is one fact that masks take out of a text, and where.
type Taken struct {
	Mask       string // its name
	Start, End int    // in the text
	At         int    // where its name stands in the masked text
	Own        bool   // by one of MaskOptions.Extra
	Width      int    // of what stands there in bytes: 0 of what goes without a trace
}

// Trace returns what Mask returns, and in order what was taken out. Nothing is counted as used. A nil Masker takes nothing out.
func (m *Masker) Trace(b []byte) (masked []byte, taken []Taken) {
	if m == nil {
		return b, nil
	}
	m.eachFact(b, func(start, end int, name string) {
		taken = append(taken, Taken{Mask: name, Start: start, End: end})
	})
	if len(taken) == 0 && len(m.extra) == 0 {
		return b, nil
	}
	t := tracing{text: b, masked: make([]byte, 0, len(b)), taken: taken[:0]}
	done := 0
	for _, k := range taken {
		t.masked = append(t.masked, b[done:k.Start]...)
		t.take(k, ofLines(k.Mask))
		done = k.End
	}
	t.masked = append(t.masked, b[done:]...)
	for _, e := range m.extra {
		t = t.apply(e)
	}
	return t.masked, t.taken
}

// ofLines tells whether what a mask takes out goes without a trace.
func ofLines(mask string) bool { return mask == maskCodexModels || mask == maskGeminiStartup }

// A tracing is a text that was masked so far.
type tracing struct {
	text, masked []byte
	taken        []Taken
}

// take notes k at the end of what is masked, and puts its name there unless it is dropped.
func (t *tracing) take(k Taken, drop bool) {
	k.At = len(t.masked)
	if !drop {
		t.masked = append(append(append(t.masked, '<'), k.Mask...), '>')
	}
	k.Width = len(t.masked) - k.At
	t.taken = append(t.taken, k)
}

// apply uses an extra mask on what is masked.
func (t *tracing) apply(e ExtraMask) tracing {
	next := tracing{text: t.text, masked: make([]byte, 0, len(t.masked))}
	done, taken := 0, t.taken
	upTo := func(end int) { // what stands there stays
		for len(taken) > 0 && (taken[0].At < end || taken[0].At == end && taken[0].Width == 0) {
			k := taken[0]
			k.At += len(next.masked) - done
			next.taken, taken = append(next.taken, k), taken[1:]
		}
		next.masked = append(next.masked, t.masked[done:end]...)
		done = end
	}
	for _, at := range e.Pattern.FindAllSubmatchIndex(t.masked, -1) {
		start, end := at[0], at[1]
		if len(at) > 2 {
			start, end = at[2], at[3]
		}
		if start < done || start >= end {
			continue
		}
		upTo(start)
		k := Taken{Mask: e.Name, Start: t.origin(start, false), End: t.origin(end, true), Own: true}
		for len(taken) > 0 && taken[0].At < end {
			taken = taken[1:]
		}
		next.take(k, e.Drop)
		done = end
	}
	upTo(len(t.masked))
	return next
}

// origin returns where in the text the place at of what is masked comes from; of one within the name of a mask, where what it
// stands for begins or ends.
func (t *tracing) origin(at int, end bool) int {
	from, shift := 0, 0
	for _, k := range t.taken {
		if k.At >= at && (k.At > at || !end) {
			break
		}
		after := k.At + k.Width
		if at < after {
			if end {
				return k.End
			}
			return k.Start
		}
		from, shift = after, k.End
	}
	return shift + at - from
}
