//go:build !unix

package script_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
