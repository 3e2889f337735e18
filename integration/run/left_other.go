//go:build !linux

package run

// Running returns nothing: there is no jail here.
func (b *Box) Running() []string { return nil }
