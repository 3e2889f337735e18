package exchange

// Upgrade returns the recorded answer of b to a request for a WebSocket that was answered 426, as recorders did that carried none, and
// as an upstream does that wants to be asked by HTTP; nil for none. It is given as often as it is asked for, and the request takes
// its lane: how often a program asks does not gate.
func (o *Open) Upgrade(b *Book) *Recorded {
	rec := b.upgrades[o.identity.Key]
	if rec == nil {
		return nil
	}
	o.arrive()
	o.keepRequest()
	o.exchange.Lane = rec.Lane
	return rec
}

// setUpgradesAside takes the requests for a WebSocket that were answered 426 out of what is handed out once, unless others of their
// key got something else.
func (b *Book) setUpgradesAside(refused []*Recorded) {
	others := make(map[Key]bool)
	for _, rec := range b.recorded {
		others[rec.Key] = true
	}
	for _, rec := range refused {
		if others[rec.Key] {
			b.recorded = append(b.recorded, rec)
		} else {
			b.upgrades[rec.Key] = rec
		}
	}
}
