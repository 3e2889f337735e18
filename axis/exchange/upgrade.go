package exchange

// Upgrade answers for b a request for another protocol, as a WebSocket begins, which no recorder carries: it is refused again.
// True where one of its key was refused while recording, whose lane it takes: how often a program asks does not gate.
func (o *Open) Upgrade(b *Book) bool {
	lane, ok := b.upgrades[o.identity.Key]
	if ok {
		o.arrive()
		o.keepRequest()
		o.exchange.Lane = lane
	}
	return ok
}
