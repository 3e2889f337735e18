package deck

import (
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestLateThatCannotBegin: where the search cannot even begin, the error says that everything may hold the secret.
func TestLateThatCannotBegin(t *testing.T) {
	s := &session{dir: "/a.rec", redactor: &redactor{
		scrub: scrub.New(scrub.Key{1}, nil), roots: &recording.Roots{}, masking: &recording.Masking{Off: []string{"no such mask"}},
	}}
	s.begun = s.scrub.Mark()
	s.scrub.AddSecret("token", "lt4Xw2Lk9Vb4Nm6Tr8Yp")
	_, err := newRescrub(s, nil, rescrubOptions{})
	if late, ok := errors.AsType[*rescrub.Error](err); !ok || late.Dir != s.dir || len(late.Holds) != 6 {
		t.Errorf("got %v", err)
	}
}
