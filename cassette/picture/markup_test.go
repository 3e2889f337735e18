package picture

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// hostile is text that wants to be markup, or to turn what is beside it.
var hostile = []string{
	"</script><script>alert(1)</script>", "<!--", "]]>&lt;\"'", "\x1b]0;</title><script>\a", "a\u202eb\u2066c\u200f", "\x1b]8;;javascript:alert(1)\ax\x1b]8;;\a",
	"\xff\xfe\xed\xa0\x80\xf4\x90\x80\x80", "\ufffe\uffff\u0085\u2028", "\u0600\u06dd\u070f", "e\u0301\u0302\u0303\u200d",
	"\x1b[1;3;4:3;9;53;38;5;200;48;2;1;2;3;58;5;3mstyled\x1b[0m", "┌─┐│█░▒⠿╭╯", "漢字👍🏽🇩🇪\x1b[1;80H漢", "\x1b[8mhidden\x1b[7;2mfaint",
}

func wellFormed(t *testing.T, b []byte) (text string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatalf("%v in %.2000s", err, b)
		}
		switch v := token.(type) {
		case xml.StartElement:
			if v.Name.Local == "script" || slices.ContainsFunc(v.Attr, func(a xml.Attr) bool { return strings.HasPrefix(a.Name.Local, "on") }) {
				t.Fatalf("the SVG has a script")
			}
		case xml.CharData:
			text += string(v)
		}
	}
}

func FuzzSVG(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, "b")
		f.Add("a", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		s := script(5, 40, time.Second, a, b)
		s.command = b
		for _, window := range []bool{false, true} {
			var moving, still bytes.Buffer
			if err := errors.Join(writeSVG(&moving, s, &Options{Window: window}), writeStill(&still, s, &Options{Window: window})); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{wellFormed(t, moving.Bytes()), wellFormed(t, still.Bytes())} {
				if i := strings.IndexFunc(text, func(c rune) bool { return unicode.Is(unicode.Bidi_Control, c) }); i >= 0 {
					t.Fatalf("%q turns the direction of text", text)
				}
			}
		}
	})
}

func TestWhatIsNotSeenIsNotWritten(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " ": "", "a": "a", "\u00ad": "", "a\u2060": "a", " \u200b": "", "e\u0301": "e\u0301", "漢": "漢", "👩\u200d👧": "👩\u200d👧",
	} {
		if got := seen(text); got != want {
			t.Errorf("of %q is seen %q, expected %q", text, got, want)
		}
	}
}

func TestSVGHasTheText(t *testing.T) {
	var b bytes.Buffer
	s := script(5, 40, time.Second, "a <b> & \x1b[31mred\x1b[0m 漢", "\x1b[2J\x1b[Hsecond")
	if err := writeStill(&b, s, &Options{At: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a <b> &", "red", "漢"} {
		if !strings.Contains(wellFormed(t, b.Bytes()), want) {
			t.Errorf("%q is not in the SVG", want)
		}
	}
	if strings.Contains(b.String(), "second") || strings.Contains(b.String(), "animate") {
		t.Error("a still SVG has more than one time")
	}
	b.Reset()
	if err := writeSVG(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	if text := wellFormed(t, b.Bytes()); !strings.Contains(text, "a <b> &") || !strings.Contains(text, "second") || !strings.Contains(b.String(), "<animate ") {
		t.Errorf("an animated SVG has not all texts: %s", text)
	}
}

// records reads a page's data.
func records(t *testing.T, page string) (all [][]json.RawMessage) {
	t.Helper()
	_, data, _ := strings.Cut(page, `id="tape">`)
	data, _, ok := strings.Cut(data, "</script>")
	if !ok {
		t.Fatal("the page has no data")
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var r []json.RawMessage
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// The page has two scripts, the data and the player, whatever is recorded, and its policy names both digests.
func FuzzPage(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, "b")
		f.Add("a", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		s := script(5, 40, time.Second, a, b)
		s.command = b
		var page bytes.Buffer
		if err := writeHTML(&page, s, &Options{Title: a}); err != nil {
			t.Fatal(err)
		}
		text := page.String()
		if n := strings.Count(strings.ToLower(text), "<script"); n != 2 {
			t.Fatalf("the page has %d scripts, expected 2", n)
		}
		if n := len(records(t, text)); n < 3 {
			t.Fatalf("the data has %d records", n)
		}
	})
}

func TestPagePolicyNamesWhatThePageHolds(t *testing.T) {
	var page bytes.Buffer
	if err := writeHTML(&page, script(5, 40, time.Second, "a"), nil); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, tag := range []string{"style", "script"} {
		begin := strings.LastIndex(text, "<"+tag+">") + len(tag) + 2
		content, _, _ := strings.Cut(text[begin:], "</"+tag+">")
		sum := sha256.Sum256([]byte(content))
		if digest := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(text, escape(digest)) {
			t.Errorf("the policy does not name the %s", tag)
		}
	}
	for _, no := range []string{"http://", "src=", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), no) {
			t.Errorf("the page has %q: it may load nothing", no)
		}
	}
}

// A block stands over the whole of a wide character.
func TestCursorOfAWideCharacter(t *testing.T) {
	s := script(3, 20, time.Second, "三x\x1b[1;1H", "\x1b[1;3H")
	var still, moving bytes.Buffer
	if err := errors.Join(writeStill(&still, s, &Options{At: 500 * time.Millisecond}), writeSVG(&moving, s, nil)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ in, want string }{
		{still.String(), `<path d="M0 0h16v16h-16z" transform="translate(0 0)"`},
		{moving.String(), `values="M0 0h16v16h-16z;M0 0h8v16h-8z"`},
	} {
		if !strings.Contains(test.in, test.want) {
			t.Errorf("%s is not in:\n%s", test.want, test.in)
		}
	}
}
