package guest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/wasi/guest"
)

func TestElsewhereEveryCallFails(t *testing.T) {
	_, err := guest.Complete(&guest.Request{})
	if err == nil || !strings.Contains(err.Error(), "GOOS=wasip1") {
		t.Errorf("got %v", err)
	}
}

func TestBytes(t *testing.T) {
	for text, b := range map[string]guest.Bytes{`"a\u00f6"`: guest.Bytes("aö"), `""`: {}, `{"base64":"/w=="}`: {0xff}} {
		var back guest.Bytes
		if err := json.Unmarshal([]byte(text), &back); err != nil || string(back) != string(b) {
			t.Errorf("%s is %q, %v", text, back, err)
		}
		out, err := json.Marshal(b)
		if err != nil || json.Unmarshal(out, &back) != nil || string(back) != string(b) {
			t.Errorf("%q is %s, %v", b, out, err)
		}
	}
	var b guest.Bytes
	for _, text := range []string{"1", `{"base64":"!"}`, `{"base64":1}`} {
		if err := json.Unmarshal([]byte(text), &b); err == nil {
			t.Errorf("%s is %q", text, b)
		}
	}
}
