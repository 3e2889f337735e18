package masks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

func TestFacts(t *testing.T) {
	const uuid = "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"
	name := func(text, mask string) masks.Fact { return masks.Fact{Mask: mask, Text: text, Names: true} }
	m := masks.New(&masks.Options{Home: "/home/u"})
	for title, tt := range map[string]struct {
		text string
		want []masks.Fact
	}{
		"nothing":       {"hello", nil},
		"in order":      {"call_a1b2c3d4e5 of " + uuid + " and pid 4711", []masks.Fact{name("a1b2c3d4e5", "id"), name(uuid, "uuid"), name("4711", "pid")}},
		"twice":         {uuid + " " + uuid, []masks.Fact{name(uuid, "uuid"), name(uuid, "uuid")}},
		"times":         {"on 2026-11-21 it took 3 ms", []masks.Fact{{Mask: "date", Text: "2026-11-21"}, {Mask: "duration", Text: "3 ms"}}},
		"a path":        {"/home/u/x", nil},
		"a placeholder": {"key td_api_key_0123456789ab of " + uuid, []masks.Fact{name(uuid, "uuid"), name("0123456789ab", "")}},
	} {
		if d := cmp.Diff(tt.want, m.Facts([]byte(tt.text))); d != "" {
			t.Errorf("%s: %s", title, d)
		}
	}
	if got := m.Used(); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
	var none *masks.Masker
	if d := cmp.Diff([]masks.Fact{name("0123456789ab", "")}, none.Facts([]byte("td_key_0123456789ab "+uuid))); d != "" {
		t.Error(d)
	}
	off := masks.New(&masks.Options{Disabled: []string{"uuid"}})
	if got := off.Facts([]byte(uuid)); got != nil {
		t.Errorf("a mask that is off gives %v", got)
	}
}

func TestRename(t *testing.T) {
	const was, now = "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "11111111-7d3c-4f7e-9d55-0c2a5f2f3c22"
	to := func(name string) string {
		return map[string]string{was: now, "4711": "12", "2026-11-21": "a time is no name", "0123456789ab": "nor a placeholder"}[name]
	}
	m := masks.New(nil)
	for text, want := range map[string]string{
		`{"id":"` + was + `","of":"` + was + `"}`: `{"id":"` + now + `","of":"` + now + `"}`,
		"pid 4711 of 4711 on 2026-11-21":          "pid 12 of 4711 on 2026-11-21",
		"call_a1b2c3d4e5":                         "call_a1b2c3d4e5",
		"td_api_key_0123456789ab":                 "td_api_key_0123456789ab",
	} {
		if got := string(m.Rename([]byte(text), to)); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	if got := m.Used(); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
}
