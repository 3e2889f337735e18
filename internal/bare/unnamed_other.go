//go:build !windows

package bare

import (
	"errors"
	"os"
)

// UnnamedFile makes a file for this process alone, and takes its name away before a byte is in it.
func UnnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "tapedeck-") // mode 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
