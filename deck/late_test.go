package deck

import (
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestLateThatCannotBegin: where the search cannot even begin, the error says that everything may hold the secret.
func TestLateThatCannotBegin(t *testing.T) {
	s := &session{dir: "/a.rec", guard: &guard{
		scrub: scrub.New(scrub.Key{1}, nil), roots: &Roots{}, masking: &Masking{Off: []string{"no such mask"}},
	}}
	s.begun = s.scrub.Mark()
	s.scrub.AddSecret("token", "lt4Xw2Lk9Vb4Nm6Tr8Yp")
	_, err := newLate(s, nil, lateOptions{})
	if late, ok := errors.AsType[*LateError](err); !ok || late.Dir != s.dir || len(late.Holds) != 5 {
		t.Errorf("got %v", err)
	}
}
