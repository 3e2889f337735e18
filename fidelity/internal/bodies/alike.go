package bodies

import "github.com/tapedeck-dev/tapedeck/fidelity/internal/align"

// maxAlike bounds the table in which elements are paired by likeness. Longer runs are paired in order.
const maxAlike = 10_000

// maxLikeness is how many bytes of the start and of the end of a value tell how alike it is.
const maxLikeness = 4096

// pairAlike pairs the elements as of a gap with the elements bs that they most likely became, in order. The pairs are
// indices into as and bs. Elements that are no version of each other stay alone.
func (d *bodyDiff) pairAlike(g *gap, as, bs []int) (out []align.Match) {
	if len(as)*len(bs) > maxAlike || d.each != nil && len(as) == len(bs) {
		for i := range min(len(as), len(bs)) {
			out = append(out, align.Match{I: i, J: i})
		}
		return out
	}
	// score[i][j] is the best sum of likenesses that as[i:] and bs[j:] give.
	score, like := make([][]float64, len(as)+1), make([][]float64, len(as))
	score[len(as)] = make([]float64, len(bs)+1)
	for i := len(as) - 1; i >= 0; i-- {
		score[i], like[i] = make([]float64, len(bs)+1), make([]float64, len(bs))
		for j := len(bs) - 1; j >= 0; j-- {
			like[i][j] = d.likeness(&g.a[as[i]], &g.b[bs[j]])
			score[i][j] = max(score[i+1][j], score[i][j+1], like[i][j]+score[i+1][j+1])
		}
	}
	for i, j := 0, 0; i < len(as) && j < len(bs); {
		switch {
		case like[i][j] > 0 && score[i][j] == like[i][j]+score[i+1][j+1]:
			out = append(out, align.Match{I: i, J: j})
			i, j = i+1, j+1
		case score[i][j] == score[i+1][j]:
			i++
		default:
			j++
		}
	}
	return out
}

// likeness is 0 for two values that are no version of each other, else above 0 and at most 1: the share of what is
// written that a common start and a common end make up.
func (d *bodyDiff) likeness(a, b *node) float64 {
	if !d.sameShape(a, b) {
		return 0
	}
	ea, eb := d.a[a.from:a.to], d.b[b.from:b.to]
	head := commonPrefix(ea[:min(len(ea), maxLikeness)], eb[:min(len(eb), maxLikeness)])
	tail := commonSuffix(ea[head:], eb[head:], maxLikeness)
	return 0.05 + 0.95*float64(head+tail)/float64(max(min(len(ea), 2*maxLikeness), min(len(eb), 2*maxLikeness), 1))
}

// sameShape reports whether a may have become b: values of one type, and objects that agree in what says what an element
// is (a user's message does not become a model's, nor one tool another).
func (d *bodyDiff) sameShape(a, b *node) bool {
	kindA, kindB := d.a[a.from], d.b[b.from]
	if kindA != '{' || kindB != '{' {
		return (kindA == '{') == (kindB == '{') && (kindA == '[') == (kindB == '[')
	}
	for _, k := range []string{"role", "type"} {
		if a.text(d.a, k) != b.text(d.b, k) {
			return false
		}
	}
	return nameOf(d.a, a) == nameOf(d.b, b)
}
