package ttyscrub

import "io"

// Scan derives the screens of a recorded stream of size bytes and returns the secrets in it, in the order of the stream. What
// was masked has none. The error is r's.
func Scan(r io.ReaderAt, size int64, resizes []Resize, o *Options) ([]Hit, error) { return nil, nil }

// ScanInput is Scan for what was typed: the bytes of all events of input, one after another.
func ScanInput(b []byte, o *Options) []Hit { return nil }

// Mask masks the text of hits in b, which stands at an offset of the stream, in place.
func Mask(b []byte, at int64, hits []Hit) {}

// Text returns s with its secrets masked: a title, an argument, the text of an event.
func Text(s string, o *Options) (masked string, hits []Hit) { return s, nil }
