package check

import "math/bits"

// An alignment is where a line is nearest to a wanted text.
type alignment struct {
	distance   int    // characters to put in, take out or change
	start, end int    // of the nearest part of the line, in characters
	differs    []bool // for start…end: this character is not as wanted, or one before it is missing
	cut        bool   // something is missing at the end
}

// Bounds of what is aligned, in characters. What is longer is compared as far as that.
const (
	maxWanted = 256
	maxLine   = 1024
)

// align finds the part of line that wanted is nearest to (Sellers), by edit distance. Wanted as a whole counts, the line's ends
// do not.
func align(wanted, line []rune) alignment {
	wanted, line = wanted[:min(len(wanted), maxWanted)], line[:min(len(line), maxLine)]
	n, m := len(wanted), len(line)
	width := m + 1
	d := make([]uint16, (n+1)*width)
	for i := 1; i <= n; i++ {
		d[i*width] = uint16(i)
		for j := 1; j <= m; j++ {
			change := d[(i-1)*width+j-1]
			if wanted[i-1] != line[j-1] {
				change++
			}
			d[i*width+j] = min(change, d[(i-1)*width+j]+1, d[i*width+j-1]+1)
		}
	}
	end := 0
	for j := 1; j <= m; j++ {
		if d[n*width+j] < d[n*width+end] {
			end = j
		}
	}
	for end < m && d[n*width+end+1] == d[n*width+end] {
		end++ // another character in place of a missing one
	}
	return walkBack(wanted, line, d, end)
}

// walkBack follows the table from the end of the nearest part to its start.
func walkBack(wanted, line []rune, d []uint16, end int) alignment {
	width := len(line) + 1
	a := alignment{distance: int(d[len(wanted)*width+end]), end: end}
	marks := make([]bool, len(line)+1)
	i, j := len(wanted), end
	for i > 0 {
		here := d[i*width+j]
		switch {
		case j > 0 && wanted[i-1] == line[j-1] && here == d[(i-1)*width+j-1]:
			i, j = i-1, j-1
		case j > 0 && here == d[(i-1)*width+j-1]+1:
			i, j = i-1, j-1
			marks[j] = true
		case here == d[(i-1)*width+j]+1:
			i--
			if j < end {
				marks[j] = true
			} else {
				a.cut = true
			}
		default:
			j--
			marks[j] = true
		}
	}
	a.start, a.differs = j, marks[j:end]
	return a
}

// alike tells whether a is near enough to be shown as what wanted may have become.
func (a *alignment) alike(wanted []rune) bool { return 2*a.distance <= min(len(wanted), maxWanted) }

// letters are the characters of a text but for blanks: a bit each, those beyond ASCII by their lowest bits.
type letters [4]uint64

func lettersOf(s string) (l letters) {
	for _, r := range s {
		if r != ' ' && r != '\n' {
			l[r>>6&3] |= 1 << (r & 63)
		}
	}
	return l
}

// shares tells, fast, whether a line can be near to a text: it has half of the text's different characters.
func (l *letters) shares(line string) bool {
	have := lettersOf(line)
	all, both := 0, 0
	for i := range l {
		all += bits.OnesCount64(l[i])
		both += bits.OnesCount64(l[i] & have[i])
	}
	return 2*both >= all
}
