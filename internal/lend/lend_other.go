//go:build !linux

package lend

import (
	"errors"
	"os"
)

// A Loan does not exist on this system.
type Loan struct{}

// New returns errors.ErrUnsupported.
func New(_, _ *os.File) (*Loan, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Loan) Close() {}

// Peek returns errors.ErrUnsupported.
func Peek(*os.File) ([]byte, error) { return nil, errors.ErrUnsupported }

// Pass is not called.
func (*Loan) Pass(<-chan struct{}) ([]byte, error) { return nil, errors.ErrUnsupported }
