package deck

import "testing"

func TestStandsIn(t *testing.T) {
	for _, c := range []struct {
		text, value string
		want        bool
	}{
		{"wait(17)", "17", true}, {"17", "17", true}, {"sleep 17 ms", "17 ms", true}, {"T=17;", "17", true}, {"1717 x17 17", "17", true},
		{"MIIF174aB", "174", false}, {"1.17", "17", false}, {"117 171", "17", false}, {"a", "", false},
	} {
		if got := standsIn([]byte(c.text), c.value); got != c.want {
			t.Errorf("%q in %q: %v", c.value, c.text, got)
		}
	}
}
