package files

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestTakeLong: a long content is stored, marked and compared as it would be as a whole, with every kind of scrubber.
func TestTakeLong(t *testing.T) {
	key := "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	line := strings.Repeat("a line of text\n", 2*longFile/15)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	must(t, err)
	must(t, second(z.Write([]byte(line+key+"\n"+line))))
	must(t, z.Close())
	real := scrub.New(scrub.Key{}, nil)
	for name, c := range map[string]struct {
		path, text string
		scrubber   Scrubber
	}{
		"no scrubber": {"a", line, nil},
		"plain":       {"a", line, real},
		"secret":      {"a", line + key + "\n" + line, real},
		"compressed":  {"a.gz", packed.String(), real},
		"credentials": {".netrc", line, real},
		"another":     {"a", line + secretWord, fakeScrubber{}},
	} {
		wantBytes, wantSecret, err := hideContent(c.scrubber, c.path, []byte(c.text))
		must(t, err)
		for _, store := range []cas.Store{nil, cas.NewMemory()} {
			tk := taker{store: store, scrubber: c.scrubber, limit: 64 << 20}
			got, err := tk.take(strings.NewReader(c.text), int64(len(c.text)), c.path, nil)
			must(t, err)
			if got.digest != cas.Sum(wantBytes) || got.size != int64(len(wantBytes)) || got.secret != wantSecret || got.length != int64(len(c.text)) {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	tk := taker{store: cas.NewMemory(), limit: 3 << 20}
	if _, err := tk.take(strings.NewReader(strings.Repeat("x", 4<<20)), 2<<20, "grows", nil); err == nil || err.Error() != string(TooLarge) {
		t.Errorf("a file that grows over the limit gives %v", err)
	}
}
