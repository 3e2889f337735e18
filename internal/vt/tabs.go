package vt

// tabStops holds a bit a column.
type tabStops []bool

func newTabStops(cols int) tabStops {
	t := make(tabStops, cols)
	t.every8(0)
	return t
}

func (t tabStops) every8(from int) {
	for i := (from + 7) &^ 7; i < len(t); i += 8 {
		t[i] = true
	}
}

// resize keeps the stops that there are; new columns have one every 8.
func (t *tabStops) resize(cols int) {
	was := len(*t)
	if cols <= was {
		*t = (*t)[:cols]
		return
	}
	*t = append(*t, make(tabStops, cols-was)...)
	clear((*t)[was:])
	t.every8(was)
}

// tab moves the cursor n tab stops to the right, up to the last column.
func (s *Screen) tab(n int) {
	if s.pending {
		return
	}
	end := s.edge() - 1
	for ; n > 0 && s.x < end; n-- {
		s.x++
		for s.x < end && !s.tabs[s.x] {
			s.x++
		}
	}
}

// backTab moves it n stops to the left.
func (s *Screen) backTab(n int) {
	s.pending = false
	for ; n > 0 && s.x > 0; n-- {
		s.x--
		for s.x > 0 && !s.tabs[s.x] {
			s.x--
		}
	}
}
