package exchange

// Take is what a request that names no attempt gets.
func (b *Book) Take(k Key) (*Recorded, bool) { return b.take(k, "") }
