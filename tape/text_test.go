package tape

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Strings are written in steps of sixteen and eight bytes: each length and each place of an escape goes another way.
func TestAnEscapeIsWrittenAtEveryPlace(t *testing.T) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for n := range len(plain) {
		for at := range n + 1 {
			for c, escaped := range map[string]string{`"`: `\"`, `\`: `\\`, "\n": `\n`, "\x01": `\u0001`, "\"\"": `\"\"`, "é": "é", "": ""} {
				got := string(appendString([]byte("["), plain[:at]+c+plain[at:n]))
				if want := `["` + plain[:at] + escaped + plain[at:n] + `"`; got != want {
					t.Fatalf("%q at %d of %d: %s, want %s", c, at, n, got, want)
				}
			}
		}
	}
	if got, want := string(appendString(nil, strings.Repeat("\x00", 100))), `"`+strings.Repeat(`\u0000`, 100)+`"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNumbersAreDecimal(t *testing.T) {
	for n := uint64(1); n != 0; n = n * 10 / 7 * 2 {
		for _, m := range []uint64{n - 1, n, n + 1, ^n, n % 100, n % 1000} {
			if got, want := string(appendNumber([]byte("x"), m)), "x"+strconv.FormatUint(m, 10); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
			if got, want := string(appendNumber([]byte("x"), int64(m))), fmt.Sprint("x", int64(m)); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		if n > 1<<62 {
			return
		}
	}
}
