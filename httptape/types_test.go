package httptape_test

import (
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/httptape"
)

type exchangeRequest = exchange.Request

func isTooLarge(err error) bool { return errors.Is(err, exchange.ErrTooLarge) }

// unmatched returns the *UnmatchedError that err must be.
func unmatched(t testing.TB, err error) *httptape.UnmatchedError {
	t.Helper()
	var e *httptape.UnmatchedError
	if !errors.As(err, &e) {
		t.Fatalf("want an UnmatchedError, got %v", err)
	}
	return e
}
