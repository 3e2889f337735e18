//go:build unix

package durable

import "os"

// syncFlags opens a file for fsync, which needs no right to write here.
const syncFlags = os.O_RDONLY

// SyncDir brings the names in a directory to the disk.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}
