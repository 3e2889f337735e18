package canonjson

import "fmt"

// An Error says why a text is refused and where.
type Error struct {
	Offset int    // in bytes, from the start of the source
	Reason string // for people
}

func (e *Error) Error() string { return fmt.Sprintf("json, byte %d: %s", e.Offset, e.Reason) }

// Canonical returns the canonical form of the one JSON value in src. The error is an *Error.
func Canonical(src []byte) ([]byte, error) { return Append(make([]byte, 0, len(src)), src) }

// Append appends the canonical form of the one JSON value in src to dst. The error is an *Error; dst is then returned as
// it came.
func Append(dst, src []byte) ([]byte, error) {
	v, err := Parse(src)
	if err != nil {
		return dst, err
	}
	return v.Append(dst), nil
}
