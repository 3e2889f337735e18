package cellfont

import "math"

// The size of a cell, in units.
const (
	Width  = 8
	Height = 16
)

// A Point is a place in a cell, in units from its upper left corner.
type Point struct{ X, Y float64 }

// A Shape is a filled polygon. Rect says that it is a rectangle along the axes, which is drawn on whole pixels.
type Shape struct {
	Points []Point
	Rect   bool
	Cover  float64 // how much of what is behind it is hidden: 1, less for shades
}

func rect(x0, y0, x1, y1 float64) Shape {
	return Shape{Points: []Point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}, Rect: true, Cover: 1}
}

func polygon(points ...Point) Shape { return Shape{Points: points, Cover: 1} }

// Shapes returns what a character is made of that is drawn by program; nil for one that a font has. A blank braille cell has
// none either, and no picture.
func Shapes(c rune) []Shape {
	switch {
	case c >= 0x2500 && c < 0x2580:
		return lines(c)
	case c >= 0x2580 && c < 0x25A0:
		return blocks(c)
	case c >= 0x2800 && c < 0x2900:
		return braille(int(c - 0x2800))
	case c >= 0x23BA && c <= 0x23BD: // the scan lines of DEC's graphics
		y := []float64{0, 4, 11, 15}[c-0x23BA]
		return []Shape{rect(0, y, Width, y+1)}
	case c >= 0xE0B0 && c <= 0xE0B7:
		return prompts(c)
	case c >= 0x1FB00 && c <= 0x1FB3B:
		return sextants(int(c - 0x1FB00))
	}
	return nil
}

func blocks(c rune) []Shape {
	const w, h = Width, Height
	n := float64(c - 0x2580)
	switch {
	case c == 0x2580:
		return []Shape{rect(0, 0, w, h/2)}
	case c <= 0x2588:
		return []Shape{rect(0, h-n*h/8, w, h)}
	case c <= 0x258F:
		return []Shape{rect(0, 0, (16-n)*w/8, h)}
	case c == 0x2590:
		return []Shape{rect(w/2, 0, w, h)}
	case c <= 0x2593:
		s := rect(0, 0, w, h)
		s.Cover = (n - 0x10) / 4
		return []Shape{s}
	case c == 0x2594:
		return []Shape{rect(0, 0, w, h/8)}
	case c == 0x2595:
		return []Shape{rect(w*7/8, 0, w, h)}
	}
	return grid(2, 2, quadrants[c-0x2596])
}

// quadrants are the blocks from U+2596: upper left, upper right, lower left, lower right, from the lowest bit.
var quadrants = [...]int{4, 8, 1, 13, 9, 7, 11, 2, 6, 14}

// grid fills the parts of a cell whose bits are set, row by row.
func grid(cols, rows, bits int) []Shape {
	var all []Shape
	w, h := float64(Width)/float64(cols), float64(Height)/float64(rows)
	for i := range cols * rows {
		if bits>>i&1 == 1 {
			x, y := float64(i%cols)*w, float64(i/cols)*h
			all = append(all, rect(x, y, x+w, y+h))
		}
	}
	return all
}

// sextants numbers the two by three blocks; those that are the left and the right half stand elsewhere.
func sextants(n int) []Shape {
	n++
	if n >= 0b010101 {
		n++
	}
	if n >= 0b101010 {
		n++
	}
	return grid(2, 3, n)
}

// braille: three dots down on the left, three on the right, then the fourth row.
func braille(bits int) []Shape {
	var all []Shape
	for i, at := range [8]Point{{1, 1}, {1, 5}, {1, 9}, {5, 1}, {5, 5}, {5, 9}, {1, 13}, {5, 13}} {
		if bits>>i&1 == 1 {
			all = append(all, rect(at.X, at.Y, at.X+2, at.Y+2))
		}
	}
	return all
}

// prompts are the triangles and half circles between the parts of a prompt.
func prompts(c rune) []Shape {
	const w, h = Width, Height
	var s Shape
	switch c &^ 2 {
	case 0xE0B0:
		s = polygon(Point{0, 0}, Point{w, h / 2}, Point{0, h})
	case 0xE0B1:
		s = polygon(Point{0, 0}, Point{1, 0}, Point{w, h / 2}, Point{1, h}, Point{0, h}, Point{w - 1, h / 2})
	case 0xE0B4:
		s = polygon(append([]Point{{0, 0}}, append(round(Point{0, h / 2}, w, h/2, -90, 90), Point{0, h})...)...)
	default:
		outer := round(Point{0, h / 2}, w, h/2, -90, 90)
		inner := round(Point{0, h / 2}, w-1, h/2-1, 90, -90)
		s = polygon(append(outer, inner...)...)
	}
	if c&2 != 0 {
		s = s.mirrored(true, false)
	}
	return []Shape{s}
}

// round is a piece of an ellipse; the angles are in degrees, 0 is right, 90 down.
func round(centre Point, rx, ry, from, to float64) []Point {
	const steps = 12
	points := make([]Point, steps+1)
	for i := range points {
		a := (from + (to-from)*float64(i)/steps) * math.Pi / 180
		points[i] = Point{centre.X + rx*math.Cos(a), centre.Y + ry*math.Sin(a)}
	}
	return points
}

func (s Shape) mirrored(x, y bool) Shape {
	points := make([]Point, len(s.Points))
	for i, p := range s.Points {
		if x {
			p.X = Width - p.X
		}
		if y {
			p.Y = Height - p.Y
		}
		points[i] = p
	}
	s.Points = points
	return s
}
