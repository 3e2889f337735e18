//go:build escape && linux

package escape

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var only = flag.String("only", "", "only rows whose name holds this `text`")

// TestEscape tries every row as the caller and, as root, as an unprivileged user too.
func TestEscape(t *testing.T) {
	tapedeck, remove, err := build()
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	for _, uid := range users() {
		found, err := tryEverything(uid, tapedeck, *only, os.Getenv("TAPEDECK_LONG") != "")
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			t.Run(fmt.Sprintf("%s/%v/%s", f.user, f.mode, f.row.name), func(t *testing.T) {
				switch {
				case f.State == stateNotTried:
					t.Skip(f.Detail)
				case f.good:
					t.Logf("%s: %s", f.State, f.Detail)
				default:
					t.Errorf("%s: %s; docs/reference/jail.md says otherwise", f.State, f.Detail)
				}
			})
		}
	}
}

// TestRows: a row without words is no row, and its name is the only one.
func TestRows(t *testing.T) {
	seen := make(map[string]bool)
	for _, g := range table {
		for _, r := range g.rows {
			if r.name == "" || r.tried == "" || r.how == "" || r.try == nil || seen[r.name] {
				t.Errorf("row %+v", r)
			}
			seen[r.name] = true
		}
	}
}
