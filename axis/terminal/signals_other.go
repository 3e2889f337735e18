//go:build !linux && !darwin

package terminal

// SignalsOf names no signal: terminals here make none.
func (p *PTY) SignalsOf([]byte) []string { return nil }
