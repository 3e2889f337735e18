package scrub

import "bytes"

const (
	maxParts    = 1000 // of a form; later ones are scanned as they stand
	maxBoundary = 70   // bytes, of RFC 2046
)

// inParts returns b with what holds a secret in a compressed part of it decompressed and scrubbed, where b is the body of a
// form: a file that is uploaded. found is false where there is none, and then out is b. All parts together may have left bytes
// decompressed, from which what was looked through is taken away.
func (s *Scrubber) inParts(b []byte, left *int64) (out []byte, found bool) {
	delimiter := delimiterOf(b)
	if delimiter == nil {
		return b, false
	}
	from, done := 0, 0 // done is how much of b out stands for
	for range maxParts {
		start, end := nextPart(b[from:], delimiter)
		if start < 0 {
			break
		}
		start, end = from+start, from+end
		if kept, packed := s.unpacked(b[start:end], left); packed {
			out = append(append(out, b[done:start]...), kept...)
			done = end
		}
		from = end
	}
	if done == 0 {
		return b, false
	}
	return append(out, b[done:]...), true
}

// delimiterOf returns what stands before each but the first part of the form that b is: the end of a line, two hyphens and
// its boundary. It is nil where b does not begin as a form does, with the boundary.
func delimiterOf(b []byte) []byte {
	if len(b) < 3 || b[0] != '-' || b[1] != '-' {
		return nil
	}
	line, _, ok := bytes.Cut(b[:min(len(b), maxBoundary+4)], []byte("\r\n"))
	if !ok || len(line) < 3 {
		return nil
	}
	return append([]byte("\r\n"), line...)
}

// nextPart returns where the content of the first part of b begins and ends; -1 where there is none.
func nextPart(b, delimiter []byte) (start, end int) {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return -1, -1
	}
	start = head + len("\r\n\r\n")
	n := bytes.Index(b[start:], delimiter)
	if n < 0 {
		return start, len(b) // a body that was cut
	}
	return start, start + n
}
