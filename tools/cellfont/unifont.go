package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"image"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

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
