package annotations_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
)

func FuzzRead(f *testing.F) {
	head := header(strings.Repeat("a", 64))
	for _, s := range []string{"", head, head + "# c\n\n" + `{"type":"annotation","id":"a","event_id":1,"kind":"x","span":{}}` + "\n", head + `{"type":"annotation","links":[{}],"metadata":[1]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := annotations.Read(strings.NewReader(text), "x")
		if err != nil {
			return
		}
		for _, a := range s.Annotations {
			if a.Last() < a.EventID || a.String() == "" || !a.About(a.EventID) {
				t.Errorf("%+v", a)
			}
		}
	})
}
