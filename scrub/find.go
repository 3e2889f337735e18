package scrub

// A Range is where in a text a secret stands: from Start to before End, in bytes. Part says that it is a further part of the
// secret before it.
type Range struct {
	Start, End int64
	Rule       string
	Part       bool
}

// Find returns where Bytes would put placeholders, from left to right, for who masks secrets in another way. It does not look
// into what is compressed.
func (s *Scrubber) Find(b []byte) []Range {
	spans := s.index.Load().scanAll(b)
	if len(spans) == 0 {
		return nil
	}
	sortSpans(spans)
	var found []Range
	for _, f := range resolve(spans) {
		found = append(found, f.at(0))
	}
	return found
}

// at is the range of a span in a text in which the span's begins at an offset.
func (s span) at(offset int64) Range {
	return Range{offset + int64(s.start), offset + int64(s.end), s.rule, s.blank}
}

// A Finder tells where in a stream secrets stand, wherever the stream is cut into writes. It holds back, and learns, as a Writer
// does. It is for one goroutine.
type Finder struct{ w *Writer }

// Finder returns one that tells f of every secret, in order.
func (s *Scrubber) Finder(f func(Range)) *Finder {
	w := s.Writer(nil)
	w.tell = f
	return &Finder{w}
}

// Write looks at what follows. It never keeps or changes p.
func (f *Finder) Write(p []byte) { _, _ = f.w.Write(p) } // nothing is passed on that could fail

// Held returns how many bytes of the stream are undecided: a secret may begin in them.
func (f *Finder) Held() int { return f.w.Held() }

// Close looks at what was undecided: nothing follows.
func (f *Finder) Close() { _ = f.w.Close() }
