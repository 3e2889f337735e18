package deck_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// gram is how many bytes of a secret in a row are a find: of fewer, some stand in any text.
const gram = 5

// lookFor fails the test where a file below dir, or its name, holds gram bytes of secret in a row, in any disguise. It
// shares no code with package scrub: it undoes each disguise wherever one may be, and looks for the plain bytes.
func lookFor(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inspect(t, path+" (its name)", []byte(e.Name()), secret)
		if !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		inspect(t, path, b, secret)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func inspect(t *testing.T, what string, b []byte, secret string) {
	t.Helper()
	for how, view := range views(b) {
		for i := range len(secret) - gram + 1 {
			if at := bytes.Index(view, []byte(secret[i:i+gram])); at >= 0 {
				t.Errorf("%s, %s, holds %q of the secret: %q", what, how, secret[i:i+gram], view[max(0, at-60):min(len(view), at+60)])
				break
			}
		}
	}
}

// views yields b with each disguise undone: unpacked, percent and JSON (thrice), base64 and hex over those.
func views(b []byte) func(func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		layers := map[string][]byte{"as it is": b}
		if plain := inflated(b); plain != nil {
			layers["unpacked"] = plain
		}
		for name, layer := range layers {
			for n := range 4 {
				if !yieldDecoded(name+" after "+strconv.Itoa(n)+" times of unescaping", layer, yield) {
					return
				}
				plain := unescaped(layer)
				if bytes.Equal(plain, layer) {
					break // once more does nothing either
				}
				layer = plain
			}
		}
	}
}

func yieldDecoded(name string, b []byte, yield func(string, []byte) bool) bool {
	deltas := joined(b)
	if !yield(name, b) || !yield(name+", as hex", unhexed(b)) || len(deltas) < len(b) && !yield(name+", joined deltas", deltas) {
		return false
	}
	runs := base64Runs(b)
	for shift := range 4 {
		if !yield(name+", as base64 from "+strconv.Itoa(shift), unbased(runs, shift)) {
			return false
		}
	}
	return true
}

func inflated(b []byte) []byte {
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err = zstd.NewReader(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte{0x78}):
		r, err = zlib.NewReader(bytes.NewReader(b))
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(r)
	return out
}

var escape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]|%[0-9a-fA-F]{2}`)

// unescaped undoes one layer of JSON's and of percent's escapes.
func unescaped(b []byte) []byte {
	if !bytes.ContainsAny(b, `\%`) {
		return b
	}
	return escape.ReplaceAllFunc(b, func(e []byte) []byte {
		switch {
		case e[0] == '%':
			n, _ := strconv.ParseUint(string(e[1:]), 16, 8)
			return []byte{byte(n)}
		case e[1] == 'u':
			n, _ := strconv.ParseUint(string(e[2:]), 16, 32)
			return utf8.AppendRune(nil, rune(n))
		case strings.IndexByte("bfnrt", e[1]) >= 0:
			return []byte{"\b\f\n\r\t"[strings.IndexByte("bfnrt", e[1])]}
		}
		return e[1:]
	})
}

var stringEnds = regexp.MustCompile(`"\}*\n\n(?:event: ping\n[^\n]*\n\n)*(?:event: [a-z_]*\n)?data: \{[^\n]*?"text":"`)

func isHex(c rune) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func unhexed(b []byte) (out []byte) {
	for run := range bytes.FieldsFuncSeq(b, func(c rune) bool { return !isHex(c) }) {
		if len(run) < 8 {
			continue
		}
		for shift := range 2 {
			run := run[shift:]
			plain := make([]byte, len(run)/2)
			hex.Decode(plain, run[:len(run)/2*2])
			out = append(append(out, plain...), 0)
		}
	}
	return out
}

// unbased decodes every run of base64's digits from shift digits into it.
func unbased(runs [][]byte, shift int) (out []byte) {
	for _, run := range runs {
		run = run[min(shift, len(run)):]
		plain := make([]byte, len(run))
		n, _ := base64.RawStdEncoding.Decode(plain, run[:len(run)/4*4])
		out = append(append(out, plain[:n]...), 0)
	}
	return out
}

// base64Runs returns the runs of base64's digits, in the standard alphabet and without the ends of lines in them.
func base64Runs(b []byte) (runs [][]byte) {
	var run []byte
	for i := 0; i <= len(b); i++ {
		c := byte(0)
		if i < len(b) {
			c = b[i]
		}
		switch {
		case c == '-':
			run = append(run, '+')
		case c == '_':
			run = append(run, '/')
		case c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z', c == '+', c == '/':
			run = append(run, c)
		case c == '\n' || c == '\r':
		case c == '\\' && i+1 < len(b) && (b[i+1] == 'n' || b[i+1] == 'r'):
			i++
		default:
			if len(run) >= 8 {
				runs = append(runs, run)
			}
			run = nil
		}
	}
	return runs
}

// joined takes out what stands between the texts of two events.
func joined(b []byte) []byte { return stringEnds.ReplaceAll(b, nil) }

// TestTheCheckerSees: what lookFor is for, it finds.
func TestTheCheckerSees(t *testing.T) {
	const secret = "cnry7Q2x9ZpLm4Vt8KrW3nHd"
	for _, d := range append(disguises, inLines...) {
		for what, text := range map[string]string{"plain": d.of(secret), "quoted": quoted(d.of(secret), 1), "packed": string(packedAs("gzip", d.of(secret)))} {
			if !sees(text, secret) {
				t.Errorf("%s, %s, is not seen in %q", d.name, what, text)
			}
		}
	}
	if !sees(deltas(secret), secret) {
		t.Error("deltas are not seen")
	}
}

func sees(text, secret string) bool {
	for _, view := range views([]byte(text)) {
		for i := range len(secret) - gram + 1 {
			if bytes.Contains(view, []byte(secret[i:i+gram])) {
				return true
			}
		}
	}
	return false
}
