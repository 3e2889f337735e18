package exchange

// Take is what a request of which nothing is known but its key gets.
func (b *Book) Take(k Key) (*Recorded, bool) {
	rec, _ := b.take(k, nil)
	return rec, rec != nil
}
