package jsonscan

// Int reads an integer. One that does not fit fails; no number is ever rounded.
func (s *Scanner) Int() int64 { return Integer[int64](s) }

// Uint reads an integer that is not negative. One that does not fit fails; no number is ever rounded.
func (s *Scanner) Uint() uint64 { return Integer[uint64](s) }

// Integer reads a number that fits into a T. One that does not fit, or has a fraction or an exponent, fails.
func Integer[T int | int64 | uint64](s *Scanner) T {
	negative := s.Peek() == '-'
	if negative {
		s.i++
	}
	from := s.i
	var n uint64
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		digit := uint64(s.b[s.i] - '0')
		if n > (1<<64-1-digit)/10 {
			s.Fail("number is out of range")
			return 0
		}
		n = n*10 + digit
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 || s.fraction() {
		s.Fail("want an integer")
		return 0
	}
	v := T(n)
	fits := v >= 0 && uint64(v) == n
	if negative {
		v = -v
		fits = v <= 0 && uint64(-v) == n
	}
	if !fits {
		s.Fail("number is out of range")
		return 0
	}
	return v
}

// fraction reports whether the number that was read goes on.
func (s *Scanner) fraction() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	return c == '.' || c == 'e' || c == 'E'
}

// Number reads any number and returns it as it stands in the input, whose memory it shares.
func (s *Scanner) Number() []byte {
	if c := s.Peek(); c != '-' && c-'0' > 9 {
		s.Fail("want a number")
		return nil
	}
	return s.Raw()
}
