package host_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

func TestValuesKeepWhatTheyAre(t *testing.T) {
	for _, tt := range []struct {
		v    any
		text string
	}{
		{nil, `null`}, {true, `true`}, {int64(-3), `-3`}, {0.5, `0.5`}, {"a<b>&\u2028", `"a<b>&\u2028"`},
		{json.Number("92233720368547758070"), `92233720368547758070`},
		{[]any{}, `[]`}, {host.Object{}, `{}`},
		{host.Object{{"z", int64(1)}, {"a", []any{nil}}}, `{"z":1,"a":[null]}`},
		{[]byte{0xff}, `{"base64":"/w=="}`},
	} {
		text, err := host.Encode(tt.v)
		if err != nil || string(text) != tt.text {
			t.Errorf("Encode(%v) is %s, %v: want %s", tt.v, text, err, tt.text)
		}
		back, err := host.Decode([]byte(tt.text))
		if err != nil || !reflect.DeepEqual(back, tt.v) {
			t.Errorf("Decode(%s) is %#v, %v: want %#v", tt.text, back, err, tt.v)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"a"`, "[1,", "1 2", "nul", `{"a":1,"a":2}`, "[1}", strings.Repeat("[", 1<<20)} {
		if v, err := host.Decode([]byte(text)); err == nil {
			t.Errorf("Decode(%.20q) is %v: want an error", text, v)
		}
	}
}

func TestEncodeRefusesWhatNestsTooDeep(t *testing.T) {
	var v any
	for range 1 << 20 {
		v = []any{v}
	}
	if _, err := host.Encode(v); err == nil {
		t.Error("a list a million deep was written")
	}
}

func TestBytesThatAreTextComeAsText(t *testing.T) {
	if v := host.Text([]byte("ö")); v != "ö" {
		t.Errorf("got %#v", v)
	}
	if v, ok := host.Text([]byte{0xff}).([]byte); !ok || len(v) != 1 {
		t.Errorf("got %#v", v)
	}
}
