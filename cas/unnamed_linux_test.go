package cas_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// What a killed writer leaves is what stands there while it writes.
func TestABlobHasNoNameBeforeItIsWhole(t *testing.T) {
	if fd, err := unix.Open(t.TempDir(), unix.O_TMPFILE|unix.O_RDWR, 0o600); err != nil {
		t.Skip("the file system has no unnamed files:", err)
	} else {
		unix.Close(fd)
	}
	s := openDir(t, nil)
	dir := strings.TrimSuffix(s.Path(cas.Digest{}), "/"+(cas.Digest{}).String())
	r := &lookingReader{text: "a blob", look: func() {
		if all, err := os.ReadDir(dir); err != nil || len(all) != 0 {
			t.Errorf("while the blob is written: %v, %v", all, err)
		}
	}}
	d, _, err := s.PutReader(r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(d); err != nil || string(b) != "a blob" {
		t.Errorf("%q, %v", b, err)
	}
}

// A lookingReader gives a byte at a time, and looks before each.
type lookingReader struct {
	text string
	look func()
}

func (r *lookingReader) Read(p []byte) (int, error) {
	if r.look(); r.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:1], r.text)
	r.text = r.text[n:]
	return n, nil
}
