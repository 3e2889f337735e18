package placeholders_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// TestRuleName: a placeholder has one reading, whatever the secret is called.
func TestRuleName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"API_KEY": "api_key", "x-api-key": "x_api_key", "": "secret", "__": "secret", "a_0123456789ab": "secret", "key_zh": "secret",
		strings.Repeat("a", 50): strings.Repeat("a", 40), "schlüssel": "schl__ssel",
	} {
		if got := placeholders.RuleName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestCut: what may be the beginning of a placeholder is told from what is none, and from a whole one.
func TestCut(t *testing.T) {
	t.Parallel()
	const whole = "td_key_0123456789ab"
	for i := range len(whole) {
		if got := placeholders.Cut([]byte("a " + whole[:i])); i > 0 && got != 2 {
			t.Errorf("%q: %d", whole[:i], got)
		}
	}
	for _, b := range []string{"", "a", whole, whole + " ", "td key", "td_Key", "td_key_0123456789aX"} {
		if got := placeholders.Cut([]byte(b)); got != len(b) {
			t.Errorf("%q: %d", b, got)
		}
	}
}

// TestForms: a value that is put into a form is what is taken out of it, and the form stands in the placeholder beside the rule.
func TestForms(t *testing.T) {
	t.Parallel()
	const value, placeholder = "pass \"word\"/of+<mine>é", "td_key_0123456789ab"
	for _, form := range []string{"", "zh", "zu", "zb0xx", "zv0xx", "zj1", "zj2", "zj1kma", "zj1s", "zp", "zr", "zpe", "zpsd", "zj1p"} {
		got, ok := placeholders.Undisguise(placeholders.Disguise(value, form), form)
		if !ok || got != value {
			if strings.HasPrefix(form, "zb") || strings.HasPrefix(form, "zv") {
				continue // the last digit is a neighbour's too
			}
			t.Errorf("%s: %q, %v", form, got, ok)
		}
		with := placeholders.With(placeholder, form)
		if plain, f := placeholders.Split(with); plain != placeholder || f != form || !placeholders.Is(with) {
			t.Errorf("%s: %s is %s, %s", form, with, plain, f)
		}
	}
	if value := "twelve bytes"; placeholders.Disguise(value, "zb0xx") != base64.StdEncoding.EncodeToString([]byte(value)) {
		t.Error("base64")
	}
}
