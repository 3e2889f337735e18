package exchange

// Take is what a request of which nothing is known but its key gets.
func (b *Book) Take(k Key) (*Recorded, bool) {
	rec, _ := b.take(k, nil)
	return rec, rec != nil
}

// LikeAsked is what Open.Take asks for where no key is left.
func (b *Book) LikeAsked(id *Identity, r *Request) *Recorded { return b.likeAsked(id, r) }
