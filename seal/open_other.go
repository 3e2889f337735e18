//go:build !unix

package seal

import "os"

// openNoFollow opens a file for reading. The system has no flag against links; the caller has looked at the name.
func openNoFollow(path string) (*os.File, error) { return os.Open(path) }

// openNoWait opens a file for reading. The system has no FIFOs among its files.
func openNoWait(path string) (*os.File, error) { return os.Open(path) }
