package check

import (
	"maps"
	"slices"
	"testing"
)

// TestModesAreInTheSchema: the schema names the modes that are known here.
func TestModesAreInTheSchema(t *testing.T) {
	known := slices.Sorted(maps.Keys(modes))
	if got := scenarioShape().Defs["mode"].words(); !slices.Equal(slices.Sorted(slices.Values(got)), known) {
		t.Errorf("the schema has %q, want %q", got, known)
	}
}
