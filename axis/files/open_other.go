//go:build !unix

package files

// openFlags is empty where there are no FIFOs in directories; what was opened is compared with what was listed.
const openFlags = 0
