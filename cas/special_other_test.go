//go:build !unix

package cas_test

import "fmt"

// makeSpecial makes nothing: this system has no such files.
func makeSpecial(_, what string) error { return fmt.Errorf("%w: %s", errCannotMake, what) }
