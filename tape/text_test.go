package tape

import (
	"fmt"
	"strconv"
	"testing"
)

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
