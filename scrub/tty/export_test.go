package tty

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Screen returns the screen as of all that was written, or, where the model is behind, of what it has seen.
func (l *Live) Screen() *vt.Screen { return l.model.shown() }

// Taken returns how many bytes Take and Flush have returned.
func (in *Input) Taken() int64 { return in.taken }

// Taken returns how many bytes Take and Flush have returned: the offset of what they return next.
func (l *Live) Taken() int64 { return l.taken }

// MaskShownWork is MaskShown. It returns what looking at rows cost.
func MaskShownWork(b []byte, o *Options) int64 { return maskShown(b, nil, o) }

// Clean scans a recorded stream of size bytes and masks in place what it finds, until it finds nothing: the last scan is the
// proof. It returns what it masked.
func Clean(f File, size int64, resizes []Resize, o *Options) (hits []Hit, err error) {
	for range maxRounds {
		found, err := Scan(f, size, resizes, o)
		if err != nil || len(found) == 0 {
			return sorted(hits), err
		}
		hits = append(hits, found...)
		if err := MaskAt(f, found); err != nil {
			return hits, err
		}
	}
	return hits, fmt.Errorf("expected no secret after %d rounds of masking, found some", maxRounds)
}
