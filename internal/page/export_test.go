package page

import "time"

// Hurry has runs that are being recorded looked at all the time.
func (s *Stacks) Hurry() { s.poll, s.tell = time.Millisecond, 0 }
