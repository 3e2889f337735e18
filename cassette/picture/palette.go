package picture

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
)

// A pair is what a letter is drawn with. Between the two lie the shades of its edges.
type pair struct{ fg, bg RGB }

// A ramp is the index of a picture's palette for each level of a mask.
type ramp [cellfont.Levels]uint8

// A palette is the colours of one picture of a GIF: at most 255, and index 0, which is transparent.
type palette struct {
	colors []RGB // from index 1
	index  map[RGB]uint8
	ramps  map[pair]*ramp
	steps  int // shades of an edge, the two colours among them
	coarse bool
}

const maxColors = 255

// newPalette makes a palette. pairs and solid count the cells that want a colour. All colours are exact where they fit; the
// shades between them become fewer first, then the colours themselves.
func newPalette(pairs map[pair]int, solid map[RGB]int) *palette {
	for _, steps := range []int{8, 4, 2} {
		set := map[RGB]bool{}
		for c := range solid {
			set[c] = true
		}
		for p := range pairs {
			for i := range steps {
				set[mix(p.bg, p.fg, i, steps-1)] = true
			}
			if len(set) > maxColors {
				break
			}
		}
		if len(set) <= maxColors {
			return paletteOf(sorted(set), steps)
		}
	}
	weights := map[RGB]int{}
	for c, n := range solid {
		weights[c] += n
	}
	for p, n := range pairs {
		weights[p.fg] += n
		weights[p.bg] += n
	}
	p := paletteOf(reduce(weights, maxColors), 2)
	p.coarse = true
	return p
}

func sorted(set map[RGB]bool) []RGB {
	colors := make([]RGB, 0, len(set))
	for c := range set {
		colors = append(colors, c)
	}
	slices.Sort(colors)
	return colors
}

func paletteOf(colors []RGB, steps int) *palette {
	p := &palette{colors: colors, steps: steps, index: make(map[RGB]uint8, len(colors)), ramps: map[pair]*ramp{}}
	for i, c := range colors {
		p.index[c] = uint8(i + 1)
	}
	return p
}

// of returns a colour's index; where colours were reduced, the nearest one's.
func (p *palette) of(c RGB) uint8 {
	if i, ok := p.index[c]; ok {
		return i
	}
	best, least := 0, 1<<30
	for i, o := range p.colors {
		if d := distance(c, o); d < least {
			best, least = i, d
		}
	}
	p.index[c] = uint8(best + 1)
	return uint8(best + 1)
}

func distance(a, b RGB) int {
	r, g, bl := int(a>>16&255)-int(b>>16&255), int(a>>8&255)-int(b>>8&255), int(a&255)-int(b&255)
	return 2*r*r + 4*g*g + 3*bl*bl
}

func (p *palette) ramp(of pair) *ramp {
	if r, ok := p.ramps[of]; ok {
		return r
	}
	r := new(ramp)
	for level := range r {
		step := (level*(p.steps-1) + (cellfont.Levels-1)/2) / (cellfont.Levels - 1)
		r[level] = p.of(mix(of.bg, of.fg, step, p.steps-1))
	}
	p.ramps[of] = r
	return r
}

// reduce cuts the colours into boxes at their medians and takes each box's mean.
func reduce(weights map[RGB]int, limit int) []RGB {
	all := make([]RGB, 0, len(weights))
	for c := range weights {
		all = append(all, c)
	}
	slices.Sort(all)
	boxes := [][]RGB{all}
	for len(boxes) < limit {
		widest, shift, span := -1, 0, 0
		for i, b := range boxes {
			if s, w := widestChannel(b); len(b) > 1 && w > span {
				widest, shift, span = i, s, w
			}
		}
		if widest < 0 {
			break
		}
		low, high := split(boxes[widest], shift, weights)
		boxes[widest] = low
		boxes = append(boxes, high)
	}
	set := map[RGB]bool{}
	for _, b := range boxes {
		set[mean(b, weights)] = true
	}
	return sorted(set)
}

func widestChannel(b []RGB) (shift, span int) {
	for _, s := range []int{8, 16, 0} {
		low, high := 255, 0
		for _, c := range b {
			v := int(c >> s & 255)
			low, high = min(low, v), max(high, v)
		}
		if high-low > span {
			shift, span = s, high-low
		}
	}
	return shift, span
}

func split(b []RGB, shift int, weights map[RGB]int) (low, high []RGB) {
	slices.SortFunc(b, func(x, y RGB) int {
		if d := int(x>>shift&255) - int(y>>shift&255); d != 0 {
			return d
		}
		return int(x) - int(y)
	})
	total := 0
	for _, c := range b {
		total += weights[c]
	}
	half, at := 0, 1
	for ; at < len(b)-1; at++ {
		if half += weights[b[at-1]]; half >= total/2 {
			break
		}
	}
	return b[:at:at], b[at:]
}

func mean(b []RGB, weights map[RGB]int) RGB {
	var r, g, bl, n int
	for _, c := range b {
		w := weights[c]
		r, g, bl, n = r+w*int(c>>16&255), g+w*int(c>>8&255), bl+w*int(c&255), n+w
	}
	return pack(uint8(r/n), uint8(g/n), uint8(bl/n))
}
