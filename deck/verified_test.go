package deck_test

import (
	"context"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// verified is verify.Verify for who trusts the key that a recording's seal names, and does not care for the project's: a test has keys of
// its own, and this machine's user others.
func verified(path string) (*verify.Verification, error) {
	o := new(verify.Options)
	if d, err := seal.ReadDocument(path); err == nil {
		o.Keys = []seal.PublicKey{d.Key}
	}
	v, err := verify.Verify(context.Background(), path, o)
	if v != nil {
		v.Notes = slices.DeleteFunc(v.Notes, func(n string) bool { return strings.Contains(n, "another project key") })
	}
	return v, err
}
