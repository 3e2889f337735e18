//go:build !linux

package cas

import "errors"

func createUnnamed(string) (blobFile, error) { return nil, errors.ErrUnsupported }
