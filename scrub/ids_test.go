package scrub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

func TestIDs(t *testing.T) {
	const uuid = "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"
	m := scrub.NewMasker(&scrub.MaskOptions{Home: "/home/u"})
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"nothing":       {"hello", nil},
		"in order":      {"call_a1b2c3d4e5 of " + uuid + " and pid 4711", []string{"a1b2c3d4e5", uuid, "4711"}},
		"twice":         {uuid + " " + uuid, []string{uuid, uuid}},
		"times":         {"2026-11-21T07:08:09Z took 3 ms, Saturday, November 21, 2026", nil},
		"a path":        {"/home/u/x", nil},
		"a placeholder": {"key td_api_key_0123456789ab of " + uuid, []string{uuid, "0123456789ab"}},
	} {
		if d := cmp.Diff(tt.want, m.IDs([]byte(tt.text))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if got := m.Used(); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
	var none *scrub.Masker
	if d := cmp.Diff([]string{"0123456789ab"}, none.IDs([]byte("td_key_0123456789ab "+uuid))); d != "" {
		t.Error(d)
	}
	off := scrub.NewMasker(&scrub.MaskOptions{Disabled: []string{"uuid"}})
	if got := off.IDs([]byte(uuid)); got != nil {
		t.Errorf("a mask that is off gives %q", got)
	}
}
