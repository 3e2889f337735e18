package cas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A name is taken exactly where it is what the digest that it gives is written as; nothing else becomes a path.
func FuzzParse(f *testing.F) {
	name := cas.Sum(nil).String()
	for _, s := range []string{
		"", name, strings.ToUpper(name), name[1:], name + "0", "../" + name[3:], strings.Repeat("/", 64), name[:63] + "g",
		name[:62] + "\xc3\xa9", name[:63] + "\x00", strings.Repeat("é", 32),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, err := cas.Parse(in)
		var text cas.Digest
		textErr := text.UnmarshalText([]byte(in))
		hex := len(in) == 2*cas.Size && strings.Trim(in, "0123456789abcdef") == ""
		if (err == nil) != hex || (textErr == nil) != hex || d != text {
			t.Fatalf("%q: %v and %v", in, err, textErr)
		}
		switch {
		case hex && d.String() != in:
			t.Fatalf("%q is read as %s", in, d)
		case !hex && (!errors.Is(err, cas.ErrName) || !d.IsZero()):
			t.Fatalf("%q: %s, %v", in, d, err)
		}
	})
}
