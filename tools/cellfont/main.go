// Command cellfont writes the fonts of package cellfont.
//
//	go run . -o ../../internal/cellfont
//
// It reads three fonts where Debian's packages unifont, fonts-unifont and fonts-jetbrains-mono put them (of bookworm), each
// known by its SHA-256, and writes unifont.bin and smooth.bin: the same bytes each time. Where a font is missing, or is
// another version, it says so and leaves what is there: the fonts of somebody's machine do not decide what pictures look
// like. It is a module of its own, for it needs a reader of outlines that the program does not.
package main

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A source is a font that is read.
type source struct{ path, sum, debian string }

var (
	hexFont   = source{"/usr/share/unifont/unifont.hex", "fe93c0df9a69e71df0fcf9e71af3adab3c85a393b1a3cae1eb32f69880fc1841", "unifont"}
	upperFont = source{"/usr/share/fonts/opentype/unifont/unifont_upper.otf", "29adae95e09d12c0169319669f82ae814dcafef029526c7c1304d07dd0e6fe1c", "fonts-unifont"}
	regular   = source{"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Medium.ttf", "9c99efc72a85799cb92f234fdefaad72641f9741b8a00df6c5fbcac7831b6ec8", "fonts-jetbrains-mono"}
	bold      = source{"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-ExtraBold.ttf", "74ebd63c182d6b57059e2ee46733c8810b2c4deb3ebbce821fc0b82cfab3cd14", "fonts-jetbrains-mono"}
)

// errOther says that a source is not the one whose picture is committed.
var errOther = errors.New("not the font that the committed files were made of")

func (s source) read() ([]byte, error) {
	b, err := os.ReadFile(s.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %v; install Debian's package %s", errOther, err, s.debian)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != s.sum {
		return nil, fmt.Errorf("%w: %s has SHA-256 %x, expected %s", errOther, s.path, sum, s.sum)
	}
	return b, nil
}

func main() {
	out := flag.String("o", ".", "the folder to write to")
	flag.Parse()
	err := run(*out)
	if errors.Is(err, errOther) {
		fmt.Fprintln(os.Stderr, "cellfont: nothing written:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cellfont:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	bitmap, err := unifont()
	if err != nil {
		return err
	}
	fine, err := smooth()
	if err != nil {
		return err
	}
	if err := write(filepath.Join(out, "unifont.bin"), bitmap); err != nil {
		return err
	}
	return write(filepath.Join(out, "smooth.bin"), fine)
}

// A glyph is a character of a font, its data in the form that its file has.
type glyph struct {
	char rune
	kind uint64 // 0 or 1: what package cellfont knows the data's length by
	data []byte
}

// write packs glyphs: how many, of each the distance to the character before it with its kind in the lowest bit, then the
// data of all, deflated.
func write(name string, glyphs []glyph) error {
	slices.SortStableFunc(glyphs, func(a, b glyph) int {
		if a.char != b.char {
			return int(a.char - b.char)
		}
		return int(a.kind) - int(b.kind)
	})
	raw := binary.AppendUvarint(nil, uint64(len(glyphs)))
	var last rune
	for _, g := range glyphs {
		raw = binary.AppendUvarint(raw, uint64(g.char-last)<<1|g.kind)
		last = g.char
	}
	for _, g := range glyphs {
		raw = append(raw, g.data...)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, packed.Bytes(), 0o644)
}
