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
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
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

// The cell of the smooth font, and how a letter stands in it: in pixels.
const (
	cellW, cellH = 16, 32
	em           = float64(cellW) / 0.6 // JetBrains Mono is six tenths of an em wide
	baseline     = 25
)

// smooth draws the letters of those scripts that stand well in a cell; the rest is Unifont's.
func smooth() ([]glyph, error) {
	var all []glyph
	for kind, src := range []source{regular, bold} {
		b, err := src.read()
		if err != nil {
			return nil, err
		}
		parsed, err := opentype.Parse(b)
		if err != nil {
			return nil, err
		}
		for char := rune(0x21); char < 0x10000; char++ {
			if i, err := parsed.GlyphIndex(nil, char); err != nil || i == 0 || !wanted(char) {
				continue
			}
			g, err := outline(parsed, char)
			if err != nil {
				return nil, err
			}
			g.kind = uint64(kind)
			all = append(all, g)
		}
	}
	return all, nil
}

// wanted says whether a character is taken: what is drawn by program is not, nor what is no character of a cell.
func wanted(c rune) bool {
	switch {
	case c >= 0x7F && c <= 0xA0, c == 0xAD, c >= 0x300 && c < 0x370: // controls, marks
		return false
	case c >= 0x2000 && c < 0x2010, c >= 0x2028 && c < 0x2030, c >= 0x2060 && c < 0x2070: // spaces and controls
		return false
	case c >= 0x2500 && c < 0x25A0, c >= 0xE000: // lines and blocks; private
		return false
	}
	return true
}

// outline fills a glyph's outline; two pixels a byte, the left one in the upper half.
func outline(f *opentype.Font, char rune) (glyph, error) {
	img, err := draw(f, char)
	if err != nil {
		return glyph{}, err
	}
	data := make([]byte, 0, cellW*cellH/2)
	for y := range cellH {
		for x := 0; x < cellW; x += 2 {
			data = append(data, level(img.AlphaAt(x, y).A)<<4|level(img.AlphaAt(x+1, y).A))
		}
	}
	return glyph{char: char, data: data}, nil
}

// level is a coverage in sixteen steps, a little bolder than it is: light letters on a dark ground look thin.
func level(a uint8) byte { return byte(math.Pow(float64(a)/255, 0.8)*15 + 0.5) }

func draw(f *opentype.Font, char rune) (*image.Alpha, error) {
	var buf sfnt.Buffer
	i, err := f.GlyphIndex(&buf, char)
	if err != nil {
		return nil, err
	}
	segments, err := f.LoadGlyph(&buf, i, fixed.Int26_6(math.Round(em*64)), nil)
	if err != nil {
		return nil, err
	}
	r := vector.NewRasterizer(cellW, cellH)
	at := func(p fixed.Point26_6) (x, y float32) { return float32(p.X) / 64, float32(p.Y)/64 + baseline }
	for _, s := range segments {
		x0, y0 := at(s.Args[0])
		x1, y1 := at(s.Args[1])
		x2, y2 := at(s.Args[2])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			r.ClosePath()
			r.MoveTo(x0, y0)
		case sfnt.SegmentOpLineTo:
			r.LineTo(x0, y0)
		case sfnt.SegmentOpQuadTo:
			r.QuadTo(x0, y0, x1, y1)
		case sfnt.SegmentOpCubeTo:
			r.CubeTo(x0, y0, x1, y1, x2, y2)
		}
	}
	r.ClosePath()
	img := image.NewAlpha(image.Rect(0, 0, cellW, cellH))
	r.Draw(img, img.Bounds(), image.Opaque, image.Point{})
	return img, nil
}

// unifont reads the characters of the Basic Multilingual Plane from Unifont's own format, and of the plane above it what
// terminals show: emoji and the symbols of old computers.
func unifont() ([]glyph, error) {
	b, err := hexFont.read()
	if err != nil {
		return nil, err
	}
	var all []glyph
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		g, err := hexGlyph(lines.Text())
		if err != nil {
			return nil, err
		}
		if g.char >= 0xE000 && g.char < 0xF900 && (g.char < 0xE0A0 || g.char > 0xE0D4) {
			continue // private use, but for the signs of prompts
		}
		all = append(all, g)
	}
	upper, err := upperGlyphs()
	return append(all, upper...), err
}

// hexGlyph reads a line: the character, a colon, 16 rows of 8 or 16 bits. A wide one is written as its left half, then its
// right: that packs a third better.
func hexGlyph(line string) (glyph, error) {
	name, rows, _ := strings.Cut(line, ":")
	char, err := strconv.ParseUint(name, 16, 32)
	if err != nil {
		return glyph{}, err
	}
	data, err := hex.DecodeString(rows)
	switch {
	case err != nil:
		return glyph{}, err
	case len(data) == 16:
		return glyph{char: rune(char), data: data}, nil
	case len(data) == 32:
		return glyph{char: rune(char), kind: 1, data: halves(data)}, nil
	}
	return glyph{}, fmt.Errorf("U+%s has %d bytes, expected 16 or 32", name, len(data))
}

func halves(rows []byte) []byte {
	out := make([]byte, 0, 32)
	for side := range 2 {
		for y := range 16 {
			out = append(out, rows[2*y+side])
		}
	}
	return out
}

// upperGlyphs draws outlines that are made of squares: a pixel is a sixteenth of the em.
func upperGlyphs() ([]glyph, error) {
	b, err := upperFont.read()
	if err != nil {
		return nil, err
	}
	parsed, err := opentype.Parse(b)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 16, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, err
	}
	var all []glyph
	for char := rune(0x1F000); char < 0x1FC00; char++ {
		if i, err := parsed.GlyphIndex(nil, char); err != nil || i == 0 {
			continue
		}
		all = append(all, squares(face, char))
	}
	return all, nil
}

func squares(face font.Face, char rune) glyph {
	img := image.NewAlpha(image.Rect(0, 0, 16, 16))
	dot := fixed.P(0, 14)
	bounds, mask, at, advance, _ := face.Glyph(dot, char)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if (image.Point{X: x, Y: y}).In(img.Rect) {
				img.Set(x, y, mask.At(at.X+x-bounds.Min.X, at.Y+y-bounds.Min.Y))
			}
		}
	}
	g := glyph{char: char}
	if advance > fixed.I(8) {
		g.kind = 1
	}
	for side := range 1 + int(g.kind) {
		for y := range 16 {
			var row byte
			for x := range 8 {
				if img.AlphaAt(8*side+x, y).A >= 128 {
					row |= 0x80 >> x
				}
			}
			g.data = append(g.data, row)
		}
	}
	return g
}
