package deck_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

// TestVerifyOfADamagedPackedFile flips bits of every third byte, in the long form of every one, and cuts the file there: each is told as what does not hold,
// with the place, and none as what could not be looked at.
func TestVerifyOfADamagedPackedFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	c := craft(t, filepath.Join(dir, "a.rec"), "a", "finished", 2)
	rec, err := recording.Open(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "whole")
	if _, err := library.Pack(context.Background(), rec, whole, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := verified(whole); err != nil || len(v.Problems) > 0 || v.Path != whole || v.Records != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	file, packedBytes := filepath.Join(dir, "damaged"), slices.Clone(b)
	refused := func(what string, n int, b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := verified(file)
		if err == nil && len(v.Problems) == 0 && v.Records == 2 && v.Blobs == 2 && slices.Equal(repacked(t, file), packedBytes) {
			return // a bit that the decoder does not look at: what is packed is the same to the byte
		}
		if err != nil || len(v.Problems) == 0 || !strings.HasPrefix(v.Problems[0].Path, file) || v.Problems[0].Message == "" {
			t.Errorf("%s %d of %d: %+v, %v", what, n, len(b), v, err)
		}
	}
	step := 3
	if os.Getenv("TAPEDECK_LONG") != "" {
		step = 1
	}
	for i := 0; i < len(b); i += step {
		for _, bits := range []byte{1 << (i % 8), 1 << ((i + 4) % 8), 0xff} {
			damaged := slices.Clone(b)
			damaged[i] ^= bits
			refused("flipped at", i, damaged)
		}
		refused("cut to", i, b[:i])
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// repacked unpacks a file and packs what was in it.
func repacked(t *testing.T, file string) []byte {
	t.Helper()
	rec, clean, err := library.UnpackTemp(context.Background(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer clean()
	again := filepath.Join(t.TempDir(), "again")
	if _, err := library.Pack(context.Background(), rec, again, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerifyOfWhatCannotBeOpened(t *testing.T) {
	if v, err := verified(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) || v != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// A recording.json that no recorder writes is what does not hold; the rest cannot be judged without it.
func TestVerifyOfADamagedManifest(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "a", "finished", 1)
	for _, text := range []string{"", "{", "null", `{"id":"../x","format":1,"state":"finished"}`} {
		path := c.write(t, "recording.json", text)
		v, err := verified(c.dir)
		if err != nil || v.State != verify.StateDamaged || len(v.Problems) != 1 || v.Problems[0].Path != path {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
	c.write(t, "recording.json", `{"id":"a","format":1000,"state":"finished"}`)
	if _, err := verified(c.dir); err == nil {
		t.Error("a newer format was judged")
	}
}

// What a damaged file declares is not believed: it is damaged, not too large. What is whole and declares too much is.
func TestVerifyOfWhatDeclaresTooMuch(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "a", "finished", 2)
	rec, err := recording.Open(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "packed")
	if _, err := library.Pack(context.Background(), rec, file, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var limit *packed.LimitError
	o := &library.UnpackOptions{Output: filepath.Join(t.TempDir(), "out"), Limits: packed.Limits{Bytes: 10}}
	lib := library.Of(t.TempDir())
	if _, err := lib.Unpack(context.Background(), file, o); !errors.As(err, &limit) {
		t.Errorf("whole: %v", err)
	}
	b[len(b)-1] ^= 1 // of the checksum
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lib.Unpack(context.Background(), file, o); errors.As(err, &limit) || !errors.Is(err, packed.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
}
