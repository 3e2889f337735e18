package cellfont

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
