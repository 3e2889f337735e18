package network

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// errCancelled is tape.Cancelled where it comes up in passing an answer on.
var errCancelled = errors.New(tape.Cancelled)

// unexpectedStatus is an informational answer where a final one belongs.
type unexpectedStatus struct{ code int }

func (e *unexpectedStatus) Error() string {
	return fmt.Sprintf("the upstream answered %d to a request that asked for no upgrade", e.code)
}

// errorText says why an upstream gave no answer, or why it ended: in the words of package exchange, but for what is ours.
func errorText(err error) string {
	var forbidden *ForbiddenError
	switch {
	case errors.Is(err, errCancelled):
		return tape.Cancelled
	case errors.As(err, &forbidden):
		return forbidden.Error()
	}
	return exchange.ErrorText(err)
}
