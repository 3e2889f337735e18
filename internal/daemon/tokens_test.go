package daemon

import (
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
)

// TestTokensAreThereBeforeTheDoorOpens: a client that comes while the store is still being opened finds its token.
func TestTokensAreThereBeforeTheDoorOpens(t *testing.T) {
	base := t.TempDir()
	d, err := prepare(&Options{Listen: "127.0.0.1:0", Tokens: base})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, host := range []bool{false, true} {
		if _, err := token.Read(base, d.URL(), host); err != nil {
			t.Errorf("it listens at %s, the store is not open, and: %v", d.URL(), err)
		}
	}
	if err := d.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if file, err := token.File(base, d.URL(), false); err != nil || exists(file) {
		t.Errorf("%s is there after the end (%v)", file, err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
