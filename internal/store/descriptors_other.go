//go:build !unix

package store

// descriptors is how many run files stay open.
func descriptors(wanted int) int { return min(wanted, 512) }
