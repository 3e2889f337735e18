package deck

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// manySecrets returns n secrets of a shape.
func manySecrets(n int, shape string) (out []scrub.Secret) {
	for i := range n {
		out = append(out, scrub.Secret{Placeholder: fmt.Sprintf("td_a_%012x", i), Shape: shape})
	}
	return out
}

// TestHostileSecrets: secrets that no recorder lists are refused where recording.json is read, and those that it may list
// cost a replay a moment.
func TestHostileSecrets(t *testing.T) {
	variable := func(shape string) []recording.EnvVar {
		return []recording.EnvVar{{Name: "A_KEY", Value: "td_a_000000000000", Secret: true, Shape: shape}}
	}
	many := make([]recording.EnvVar, 0, 40)
	for range 40 {
		many = append(many, variable(":1000000:a :20:a")...)
	}
	for name, tt := range map[string]struct {
		spoil   func(m *recording.Manifest)
		refused bool
	}{
		"as many as a recorder lists": {func(m *recording.Manifest) { m.Secrets = manySecrets(scrub.MaxFound, ":20:aA0") }, false},
		"one more":                    {func(m *recording.Manifest) { m.Secrets = manySecrets(scrub.MaxFound+1, ":20:aA0") }, true},
		"long ones":                   {func(m *recording.Manifest) { m.Secrets = manySecrets(400, ":1048576:aA0") }, false},
		"a variable":                  {func(m *recording.Manifest) { m.Env = variable(":1000000:a") }, false},
		"variables":                   {func(m *recording.Manifest) { m.Env = many }, true},
		"arguments":                   {func(m *recording.Manifest) { m.ArgSecrets = many }, true},
	} {
		m := recording.NewManifest(time.Now())
		m.Argv, m.Program.Path, m.Cwd = []string{"p"}, "/p", "/"
		tt.spoil(m)
		dir := t.TempDir()
		if err := m.Write(dir, false); err != nil {
			t.Fatal(err)
		}
		m, err := recording.ReadManifest(dir)
		if errors.Is(err, recording.ErrManifest) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		made := 0
		for _, d := range playOf(m, nil).dummies {
			made += len(d.Value)
		}
		if made > 16<<20 {
			t.Errorf("%s: %d bytes of dummies", name, made)
		}
	}
}

// TestJoinedSecrets: the first of two shapes stays, and there are never more than a recording may list.
func TestJoinedSecrets(t *testing.T) {
	first, second := manySecrets(scrub.MaxFound-2, ":8:a"), manySecrets(scrub.MaxFound+5, ":9:a")
	got := recording.JoinSecrets(first, second)
	if len(got) != scrub.MaxFound || got[0].Shape != ":8:a" || got[scrub.MaxFound-1] != second[scrub.MaxFound-1] {
		t.Errorf("%d secrets, the first %+v, the last %+v", len(got), got[0], got[len(got)-1])
	}
	if len(first) != scrub.MaxFound-2 {
		t.Error("the list of the first was changed")
	}
}
