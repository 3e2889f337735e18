package canonjson_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// TestDigits: what RFC 8785 would write as another number keeps its text, all else is as the RFC has it.
func TestDigits(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"2^53", "9007199254740992", "9007199254740992"},
		{"2^53+1", "9007199254740993", "9007199254740993"},
		{"-2^53-1", "-9007199254740993", "-9007199254740993"},
		{"an id", "1234567890123456788", "1234567890123456788"},
		{"the next", "1234567890123456789", "1234567890123456789"},
		{"a double, which the RFC rounds to 17 digits", "1234567890123456768", "1234567890123456768"},
		{"and what it rounds it to", "1234567890123456800", "1234567890123456800"},
		{"the last int64", "9223372036854775807", "9223372036854775807"},
		{"the last uint64", "18446744073709551615", "18446744073709551615"},
		{"2^64", "18446744073709551616", "18446744073709551616"},
		{"10^20", "100000000000000000000", "100000000000000000000"},
		{"10^21", "1000000000000000000000", "1e+21"},
		{"10^21+1", "1000000000000000000001", "1000000000000000000001"},
		{"12*10^30", "12" + strings.Repeat("0", 30), "1.2e+31"},
		{"40 digits", strings.Repeat("7", 40), strings.Repeat("7", 40)},
		{"minus zero", "-0", "0"},
		{"17 digits behind a point", "0.12345678901234567", "0.12345678901234566"},
		{"20 digits behind a point", "0.12345678901234567891", "0.12345678901234567891"},
		{"zeros behind them", "0.30000000000000000000", "0.3"},
		{"zeros before them", "0.00000000000000000001234500", "1.2345e-20"},
		{"19 digits and an exponent", "1.234567890123456789e-5", "1.234567890123456789e-5"},
		{"a whole number with a point", "1234567890123456789.0", "1234567890123456789.0"},
		{"smaller than any double", "1.2345678901234567890e-999", "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := canonjson.Canonical([]byte("[" + tt.in + "]"))
			if err != nil || string(got) != "["+tt.want+"]" {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
	for _, in := range []string{"1e400", "-1e309", "1.2345678901234567890e400", "1" + strings.Repeat("0", 309)} {
		if got, err := canonjson.Canonical([]byte(in)); err == nil {
			t.Errorf("%s: got %s, want an error", in, got)
		}
	}
}

// TestTextOfNumber: the digits that a number keeps are no text of a string.
func TestTextOfNumber(t *testing.T) {
	v, err := canonjson.Parse([]byte("1234567890123456789"))
	if err != nil || v.Text() != "" || v.Num != 1234567890123456789 {
		t.Errorf("%+v, text %q, %v", v, v.Text(), err)
	}
}

// TestIntegersAreApart: two integers have one form exactly where they are equal.
func TestIntegersAreApart(t *testing.T) {
	form := func(t *rapid.T, n *big.Int) string {
		b, err := canonjson.Canonical([]byte(n.String()))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`-?[1-9][0-9]{0,25}0{0,6}`).Draw(t, "integer")
		n, _ := new(big.Int).SetString(digits, 10)
		f, _ := strconv.ParseFloat(digits, 64)
		double, _ := new(big.Float).SetFloat64(f).Int(nil)
		short, _ := new(big.Int).SetString(strconv.FormatFloat(f, 'f', -1, 64), 10)
		near := new(big.Int).Add(n, big.NewInt(rapid.Int64Range(-300, 300).Draw(t, "step")))
		for _, other := range []*big.Int{double, short, near} {
			if (n.Cmp(other) == 0) != (form(t, n) == form(t, other)) {
				t.Fatalf("%s and %s: %s and %s", n, other, form(t, n), form(t, other))
			}
		}
	})
}

// sameDigits reports whether two texts of JSON hold the same integers to the last digit, and otherwise the same doubles.
func sameDigits(t *testing.T, want, got []byte) bool {
	t.Helper()
	return reflect.DeepEqual(withDigits(t, want), withDigits(t, got))
}

// withDigits decodes b; a number that is not too long is the text of what it is, exactly, where it is an integer.
func withDigits(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	case json.Number:
		f, _ := v.Float64()
		r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
		if ok && !strings.ContainsAny(string(v), ".eE") {
			r, _ = r.SetString(string(v))
		}
		return r.RatString()
	}
	return v
}
