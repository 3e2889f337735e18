package scrub_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// form is the body of a form with a field and two files.
func form(t testing.TB, first, second []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("----WebKitFormBoundary7MA4YWxk"); err != nil {
		t.Fatal(err)
	}
	w.WriteField("purpose", "upload")
	for name, content := range map[string][]byte{"a.gz": first, "b.gz": second} {
		part, err := w.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		part.Write(content)
	}
	w.Close()
	return b.Bytes()
}

// TestCompressedPart: a secret in a compressed file of a form is found, the parts around it stay as they are.
func TestCompressedPart(t *testing.T) {
	const secret = "Zx9QvT2mKw7Lp4Rn"
	env := &scrub.Options{Env: []string{"API_KEY=" + secret}}
	s := scrub.New(testKey, env)
	harmless := gzipped("harmless")
	for name, packed := range map[string][]byte{
		"known": gzipped("the key is " + secret), "shape": gzipped("token glpat-0123456789abcdefABCD."), "zlib": deflated("the key is " + secret),
	} {
		b := form(t, harmless, packed)
		for how, scrubbed := range map[string]func([]byte) ([]byte, bool){"Bytes": s.Bytes, "LearnBytes": s.LearnBytes} {
			out, found := scrubbed(bytes.Clone(b))
			if !found || bytes.Contains(out, packed) || !bytes.Contains(out, harmless) || !bytes.Contains(out, []byte("td_packed_")) ||
				bytes.Contains(out, []byte(secret)) || bytes.Contains(out, []byte("glpat-")) {
				t.Errorf("%s of %s: %q", how, name, out)
			}
			r := multipart.NewReader(bytes.NewReader(out), "----WebKitFormBoundary7MA4YWxk")
			parts := 0
			for {
				p, err := r.NextPart()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s of %s is no form any more: %v", how, name, err)
				}
				io.Copy(io.Discard, p)
				parts++
			}
			if again, _ := s.Bytes(out); parts != 3 || !bytes.Equal(again, out) {
				t.Errorf("%s of %s: %d parts, the second time %q", how, name, parts, again)
			}
		}
		cut := b[:bytes.Index(b, packed)+len(packed)]
		if out, found := s.Bytes(cut); !found || bytes.Contains(out, packed) {
			t.Errorf("%s, cut after it: %q", name, out)
		}
	}
	for _, b := range [][]byte{
		form(t, harmless, harmless), []byte("--"), []byte("--x"), []byte("--x\r\n"), []byte("--x\r\n\r\n"), []byte("--x\r\n\r\n\x1f\x8b\x08\r\n--x--"),
		[]byte("--" + strings.Repeat("x", 100) + "\r\n\r\n"), []byte("--- a\n+++ b\n"),
	} {
		if out, found := s.Bytes(b); found || !bytes.Equal(out, b) {
			t.Errorf("%q became %q", b, out)
		}
	}
}

// TestPartsShareOneBound: what is looked through of all parts of a form is bounded together; a part beyond is not written.
func TestPartsShareOneBound(t *testing.T) {
	s := scrub.New(testKey, nil)
	first, second := gzipped(strings.Repeat("one ", 250)), gzipped(strings.Repeat("two ", 250))
	b := form(t, first, second)
	for left, gone := range map[int64]int{2000: 0, 1999: 1, 1000: 1, 999: 2} {
		out, found := scrub.InParts(s, b, left)
		hidden := bytes.Count(out, []byte("td_packed_"))
		kept := bytes.Count(out, first) + bytes.Count(out, second)
		if found != (gone > 0) || hidden != gone || kept != 2-gone {
			t.Errorf("%d bytes: %d parts hidden, %d kept, want %d hidden", left, hidden, kept, gone)
		}
	}
}

func FuzzParts(f *testing.F) {
	f.Add(form(f, gzipped("the key is Zx9QvT2mKw7Lp4Rn"), deflated("x")))
	f.Add([]byte("--x\r\n\r\n\x1f\x8b\x08\r\n--x--"))
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		out, found := s.Bytes(b)
		if !bytes.Equal(b, before) || found == bytes.Equal(out, b) {
			t.Fatalf("%q became %q, found %v", b, out, found)
		}
		if bytes.Contains(out, []byte("Zx9QvT2mKw7Lp4Rn")) {
			t.Fatalf("%q is left", out)
		}
	})
}
