package jsonscan

import (
	"errors"
	"unicode/utf8"
)

// ErrUTF8 is wrapped by the error of bytes that are not UTF-8.
var ErrUTF8 = errors.New("not UTF-8")

// Valid says what keeps b from being one JSON value in UTF-8, nested at most MaxDepth deep. The error is a *SyntaxError. That a
// key stands twice is not asked here; see Duplicate.
func Valid(b []byte) error {
	if err := ValidUTF8(b); err != nil {
		return err
	}
	s := Scanner{b: b}
	s.Skip()
	return s.End()
}

// ValidUTF8 says at which byte b is no UTF-8. The error is a *SyntaxError that wraps ErrUTF8.
func ValidUTF8(b []byte) error {
	if utf8.Valid(b) {
		return nil
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return &SyntaxError{int64(at), ErrUTF8}
}
