package main

import (
	"image"
	"math"

	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

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
