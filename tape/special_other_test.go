//go:build !unix

package tape_test

import "testing"

// specialFiles makes nothing: this system has no such files.
func specialFiles(*testing.T, string) []string { return nil }
