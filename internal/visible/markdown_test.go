package visible

import "testing"

func TestMarkdown(t *testing.T) {
	for given, want := range map[string]string{
		"-5": "-5", "0.2s": "0.2s", "1.": "&#49;.",
		"plain: a-b, 1 of 2 (x)":       "plain: a-b, 1 of 2 (x)",
		"~~x~~ @team &lt; #1 $a$":      "&#126;&#126;x&#126;&#126; &#64;team &#38;lt; &#35;1 &#36;a&#36;",
		"<b>|`_*[]\\":                  "&#60;b&#62;&#124;&#96;&#95;&#42;&#91;&#93;&#92;",
		"# heading":                    "&#35; heading",
		"- item":                       "&#45; item",
		"+ item":                       "&#43; item",
		"1. item":                      "&#49;. item",
		"12) item":                     "&#49;2) item",
		"---":                          "&#45;--",
		"===":                          "&#61;==",
		"    code":                     "&#32;   code",
		"two\nlines\x1b[31m, ä \u202e": `two&#92;nlines&#92;x1b&#91;31m, ä &#92;u202e`,
		"":                             "",
	} {
		if got := Markdown(given); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	for s, want := range map[string]string{
		"go test": "`go test`",
		"":        "`  `",
		" a ":     "`  a  `",
		"a`b``c":  "``` a`b``c ```",
		"`":       "`` ` ``",
		"a\nb":    "`a" + Line("\n") + "b`",
	} {
		if got := Code(s); got != want {
			t.Errorf("Code(%q) = %q, expected %q", s, got, want)
		}
	}
}

func TestFence(t *testing.T) {
	for s, want := range map[string]string{
		"":                "```text\n\n```",
		"a\nb":            "```text\na\nb\n```",
		"a `b`\n":         "```text\na `b`\n```",
		"````\na\n````\n": "`````text\n````\na\n````\n`````",
	} {
		if got := Fence("text", s); got != want {
			t.Errorf("Fence(%q) = %q, expected %q", s, got, want)
		}
	}
}
