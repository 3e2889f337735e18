package jsonrpc

// A work is a request and what it holds until it is answered.
type work struct {
	Request
	size int   // bytes of its frame
	held int64 // of which so many are in the budget
	own  bool  // its size is in Conn.held
}

// backlog is a queue of work. It keeps no memory once it was empty.
type backlog struct {
	list []*work
	head int
}

func (b *backlog) len() int { return len(b.list) - b.head }

func (b *backlog) push(w *work) { b.list = append(b.list, w) }

// pop returns the oldest work, nil where there is none.
func (b *backlog) pop() *work {
	if b.head == len(b.list) {
		b.list, b.head = nil, 0
		return nil
	}
	w := b.list[b.head]
	b.list[b.head] = nil
	b.head++
	return w
}
