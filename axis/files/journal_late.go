package files

import "github.com/tapedeck-dev/tapedeck/cas"

// HideLate brings what the journal keeps into the form that it would have if what became known since had been known before, as
// the function HideLate does with trees, and returns how much changed. It is called when the program has ended, before End.
func (j *Journal) HideLate(o *LateOptions) (changed int, err error) {
	var all []*kept
	var said []*Entry
	seen := make(map[*kept]bool)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.roots {
		r.node.each(func(n *node) {
			for _, k := range []*kept{n.start, n.last} {
				if k != nil && (k.mode.IsRegular() || k.attrs != "") && !seen[k] {
					seen[k] = true
					all = append(all, k)
				}
			}
		})
		if r.said == nil {
			continue
		}
		for _, e := range r.said.differ {
			if e != nil && (e.Mode.IsRegular() || e.Attrs != "") {
				said = append(said, e)
			}
		}
	}
	for _, it := range j.ended {
		it.masked = cas.Digest{} // it is of the content as it was
		if it.now != nil && it.now.mode.IsRegular() && !seen[it.now] {
			seen[it.now] = true
			all = append(all, it.now)
		}
	}
	t := &Tree{Entries: make([]Entry, len(all), len(all)+len(said))}
	for i, k := range all {
		t.Entries[i] = *k.entry("")
	}
	for _, e := range said {
		t.Entries = append(t.Entries, Entry{Mode: e.Mode, Digest: e.Digest, Size: e.Size, Secret: e.Secret, Attrs: e.Attrs})
	}
	if changed, err = HideLate(o, t); err != nil {
		return changed, err
	}
	for i, k := range all {
		*k = *keptOf(&t.Entries[i])
	}
	for i, e := range said {
		hidden := &t.Entries[len(all)+i]
		e.Digest, e.Size, e.Secret, e.Attrs = hidden.Digest, hidden.Size, hidden.Secret, hidden.Attrs
	}
	return changed, nil
}
