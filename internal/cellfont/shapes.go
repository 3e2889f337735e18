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

// arms says of each character from U+2500 how its lines go out from the middle, to the left, right, up and down: 0 not at
// all, 1 light, 2 heavy, 3 double. Those with an x are dashed, bent or aslant.
const arms = "" +
	"1100 2200 0011 0022 xxxx xxxx xxxx xxxx xxxx xxxx xxxx xxxx 0101 0201 0102 0202 " + // 2500
	"1001 2001 1002 2002 0110 0210 0120 0220 1010 2010 1020 2020 0111 0211 0121 0112 " + // 2510
	"0122 0221 0212 0222 1011 2011 1021 1012 1022 2021 2012 2022 1101 2101 1201 2201 " + // 2520
	"1102 2102 1202 2202 1110 2110 1210 2210 1120 2120 1220 2220 1111 2111 1211 2211 " + // 2530
	"1121 1112 1122 2121 1221 2112 1212 2221 2212 2122 1222 2222 xxxx xxxx xxxx xxxx " + // 2540
	"3300 0033 0301 0103 0303 3001 1003 3003 0310 0130 0330 3010 1030 3030 0311 0133 " + // 2550
	"0333 3011 1033 3033 3301 1103 3303 3310 1130 3330 3311 1133 3333 xxxx xxxx xxxx " + // 2560
	"xxxx xxxx xxxx xxxx 1000 0010 0100 0001 2000 0020 0200 0002 1200 0012 2100 0021 " // 2570

// The weights of arms.
const (
	none = iota
	light
	heavy
	double
)

const midX, midY = Width / 2, Height / 2

func lines(c rune) []Shape {
	switch {
	case c >= 0x2504 && c <= 0x250B:
		return dashes(int(c-0x2504)&1 == 1, int(c-0x2504)&2 != 0, 3+int(c-0x2504)/4)
	case c >= 0x254C && c <= 0x254F:
		return dashes(int(c-0x254C)&1 == 1, c >= 0x254E, 2)
	case c >= 0x256D && c <= 0x2570:
		return []Shape{arc().mirrored(c == 0x256E || c == 0x256F, c >= 0x256F)}
	case c >= 0x2571 && c <= 0x2573:
		return aslant(c)
	}
	a := arms[(c-0x2500)*5:]
	l, r, u, d := int(a[0]-'0'), int(a[1]-'0'), int(a[2]-'0'), int(a[3]-'0')
	var all []Shape
	all = appendArm(all, r, l, u, d, func(from, side0, side1 float64) Shape { return rect(midX+from, midY+side0, Width, midY+side1) })
	all = appendArm(all, l, r, u, d, func(from, side0, side1 float64) Shape { return rect(0, midY+side0, midX-from, midY+side1) })
	all = appendArm(all, d, u, l, r, func(from, side0, side1 float64) Shape { return rect(midX+side0, midY+from, midX+side1, Height) })
	return appendArm(all, u, d, l, r, func(from, side0, side1 float64) Shape { return rect(midX+side0, 0, midX+side1, midY-from) })
}

// appendArm adds the lines of one arm. Across it lie the arms a (at the lower coordinates) and b; put makes a rectangle that
// begins from units behind the middle, in the arm's direction, and lies between two distances from its axis.
func appendArm(all []Shape, weight, opposite, a, b int, put func(from, side0, side1 float64) Shape) []Shape {
	switch weight {
	case light, heavy:
		half := float64(weight) / 2
		return append(all, put(singleStart(opposite, a, b), -half, half))
	case double:
		all = append(all, put(doubleStart(a, b), -2, -1))
		return append(all, put(doubleStart(b, a), 1, 2))
	}
	return all
}

// singleStart is where a single line begins: it closes the corner with what lies across.
func singleStart(opposite, a, b int) float64 {
	switch {
	case a == double && b == double && opposite == none:
		return 1 // at the nearer of the two lines
	case a == double && b == double:
		return 0
	case a == double || b == double:
		return -2
	}
	return -float64(max(a, b)) / 2
}

// doubleStart is where one line of a double one begins; near lies across on its own side.
func doubleStart(near, far int) float64 {
	switch {
	case near == double:
		return 1
	case far == double:
		return -2
	}
	return -float64(max(near, far)) / 2
}

func dashes(thick, upright bool, n int) []Shape {
	half := 0.5
	if thick {
		half = 1
	}
	var all []Shape
	for i := range n {
		if upright {
			step := float64(Height) / float64(n)
			y := float64(i)*step + step*0.2
			all = append(all, rect(midX-half, y, midX+half, y+step*0.6))
			continue
		}
		step := float64(Width) / float64(n)
		x := float64(i)*step + step*0.2
		all = append(all, rect(x, midY-half, x+step*0.6, midY+half))
	}
	return all
}

// arc is the rounded corner from the right to below; it goes a little over the cell's edge, for rounding to pixels.
func arc() Shape {
	centre := Point{Width, midY + 4}
	points := append([]Point{{3.5, Height + 1}}, round(centre, 4.5, 4.5, 180, 270)...)
	points = append(points, Point{Width + 1, 7.5}, Point{Width + 1, 8.5})
	points = append(points, round(centre, 3.5, 3.5, 270, 180)...)
	return polygon(append(points, Point{4.5, Height + 1})...)
}

func aslant(c rune) []Shape {
	const w, h, d = Width, Height, 0.6
	falling := polygon(Point{-d, 0}, Point{d, 0}, Point{w + d, h}, Point{w - d, h})
	switch c {
	case 0x2571:
		return []Shape{falling.mirrored(true, false)}
	case 0x2572:
		return []Shape{falling}
	}
	return []Shape{falling, falling.mirrored(true, false)}
}
