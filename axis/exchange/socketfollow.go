package exchange

// follow makes the play that of the recorded socket that the choice has become. The caller holds mu.
func (p *SocketPlay) follow() {
	if p.choice == nil {
		return
	}
	rec, entries, times := p.choice.current()
	if times == p.changes {
		return
	}
	p.changes = times
	same := 0 // entries that stay: nothing that follows has had its turn
	for same < min(len(entries), len(p.entries)) && entries[same] == p.entries[same] {
		same++
	}
	p.rec, p.entries = rec, entries
	p.states = append(p.states[:same:same], make([]entryState, len(entries)-same)...)
	p.open, p.next = min(p.open, same), min(p.next, same)
	if p.gone {
		p.noteEnd()
	}
	p.woken()
}

// changed tells a play that it may be of another recorded socket.
func (p *SocketPlay) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken()
}

// noteEnd notes that the program has ended the socket. The caller holds mu.
func (p *SocketPlay) noteEnd() {
	for i, e := range p.entries {
		if e.isEnd() {
			p.states[i].came = true
		}
	}
}

// learnOpening learns ids from how the socket was opened. The caller holds the Socket's mu and mu, or is alone yet.
func (p *SocketPlay) learnOpening() {
	if p.named == p.rec || len(p.ids) == 0 {
		return
	}
	p.named = p.rec
	p.names.learn(idsOf(p.book.classifier, p.book.request(p.rec)), p.ids)
}
