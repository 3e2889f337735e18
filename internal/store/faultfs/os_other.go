//go:build !linux

package faultfs

import "os"

// datasync is F_FULLFSYNC on macOS, where package os does that, and FlushFileBuffers on Windows.
func datasync(f *os.File) error { return f.Sync() }

func allocate(*os.File, int64) error { return ErrUnsupported }

func syncAll(string) error { return ErrUnsupported }
