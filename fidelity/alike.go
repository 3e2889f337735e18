package fidelity

// maxAlike bounds the table in which elements are paired by likeness. Longer runs are paired in order.
const maxAlike = 10_000

// pairAlike pairs the elements of a with the elements of b that they most likely became, in order. ea and eb are their
// JSON. Elements that are no version of each other stay alone.
func pairAlike(a, b []any, ea, eb []string) []match {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if len(a)*len(b) > maxAlike {
		return pairInOrder(min(len(a), len(b)))
	}
	// score[i][j] is the best sum of likenesses that a[i:] and b[j:] give.
	score := make([][]float64, len(a)+1)
	like := make([][]float64, len(a))
	for i := range score {
		score[i] = make([]float64, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		like[i] = make([]float64, len(b))
		for j := len(b) - 1; j >= 0; j-- {
			like[i][j] = likeness(a[i], b[j], ea[i], eb[j])
			score[i][j] = max(score[i+1][j], score[i][j+1], like[i][j]+score[i+1][j+1])
		}
	}
	return pathOf(score, like)
}

func pairInOrder(n int) []match {
	out := make([]match, n)
	for i := range out {
		out[i] = match{i, i}
	}
	return out
}

// pathOf walks the table of scores and returns the pairs that it is made of.
func pathOf(score, like [][]float64) []match {
	var out []match
	for i, j := 0, 0; i < len(like) && j < len(like[0]); {
		switch {
		case like[i][j] > 0 && score[i][j] == like[i][j]+score[i+1][j+1]:
			out = append(out, match{i, j})
			i, j = i+1, j+1
		case score[i][j] == score[i+1][j]:
			i++
		default:
			j++
		}
	}
	return out
}

// likeness is 0 for two values that are no version of each other, else above 0 and at most 1: the share of their JSON
// that a common start and a common end make up.
func likeness(a, b any, ea, eb string) float64 {
	if !sameShape(a, b) {
		return 0
	}
	n := min(len(ea), len(eb))
	head := 0
	for head < n && ea[head] == eb[head] {
		head++
	}
	tail := 0
	for tail < n-head && ea[len(ea)-1-tail] == eb[len(eb)-1-tail] {
		tail++
	}
	return 0.05 + 0.95*float64(head+tail)/float64(max(len(ea), len(eb), 1))
}

// sameShape reports whether a may have become b: values of one type, and objects that agree in the keys that say what
// an element is (a user's message does not become a model's, nor one tool another).
func sameShape(a, b any) bool {
	oa, ok := a.(map[string]any)
	if !ok {
		_, object := b.(map[string]any)
		_, listA := a.([]any)
		_, listB := b.([]any)
		return !object && listA == listB
	}
	ob, ok := b.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range []string{"role", "type", "name"} {
		sa, _ := oa[k].(string)
		sb, _ := ob[k].(string)
		if sa != sb {
			return false
		}
	}
	return true
}
