package scrub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// learnNamed is LearnAll for one value.
func learnNamed(s *scrub.Scrubber, name, value string) (fresh, over bool) {
	fresh, places := s.LearnAll([]scrub.Named{{Name: name, Value: value}})
	return fresh, len(places) > 0
}

// TestHideAt: beyond what is learnt, a value is hidden in its place alone, in any pieces, with the form in which it stood; what
// stands around it is scrubbed as ever.
func TestHideAt(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	for i := range 512 {
		if fresh, over := learnNamed(s, "token", fmt.Sprintf("value-of-no-shape-%d", i)); !fresh || over {
			t.Fatalf("%d: fresh is %t, over is %t", i, fresh, over)
		}
	}
	const value, other, later = `pass"word of\mine`, "another/one of them", "and/a third"
	for _, v := range []string{value, other, later} {
		if fresh, over := learnNamed(s, "password", v); fresh || !over {
			t.Fatalf("%s: fresh is %t, over is %t", v, fresh, over)
		}
	}
	if _, over := learnNamed(s, "password", "short"); !over {
		t.Error("what is too short is hidden in its place")
	}
	in := `{"b":"value-of-no-shape-7","password":"` + `pass\"word of\\mine` + `","u":"https://a:` + value + `@h","x":"another%2Fone+of+them` + strings.Repeat("y", 100) + later
	var places []scrub.Place
	for raw, v := range map[string]string{`pass\"word of\\mine`: value, "another%2Fone+of+them": other, later: later} {
		at := int64(strings.LastIndex(in, raw))
		places = append(places, scrub.Place{Start: at, End: at + int64(len(raw)), Name: "password", Value: v})
	}
	slices.SortFunc(places, func(a, b scrub.Place) int { return int(a.Start - b.Start) })
	want := string(scrub.Renumber([]byte(s.String(string(s.HideAt([]byte(in), places))))))
	for _, part := range []string{`"password":"td_#2","u"`, `"x":"td_#`, `yytd_#`, `"b":"td_#1"`} {
		if !strings.Contains(want, part) {
			t.Errorf("%s is not in %s", part, want)
		}
	}
	for _, n := range []int{1, 3, 7, 50, len(in)} {
		var out strings.Builder
		w := s.Writer(&out)
		w.HideAt(places)
		for rest := []byte(in); len(rest) > 0; rest = rest[min(n, len(rest)):] {
			w.Write(rest[:min(n, len(rest))])
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(scrub.Renumber([]byte(out.String()))); got != want {
			t.Errorf("in pieces of %d\n%s\n%s", n, got, want)
		}
		if !strings.Contains(out.String(), "td_password_zj1_") || !strings.Contains(out.String(), "td_password_zps_") {
			t.Errorf("no form: %s", out.String())
		}
	}
}
