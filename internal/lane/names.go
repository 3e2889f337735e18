package lane

// Names say which id of this run stands for which of the recording: a program that makes ids up makes others in each run, and a match of
// two messages shows which are the same. Its zero value works.
type Names struct {
	recorded map[string]string // by this run's
	replayed map[string]string // by the recording's
}

// Recorded is the recorded id that one of this run stands for: itself, while no match has shown another.
func (n *Names) Recorded(now string) string {
	if was, ok := n.recorded[now]; ok {
		return was
	}
	return now
}

// Replayed is this run's id for a recorded one; known is false while no match has shown it.
func (n *Names) Replayed(was string) (now string, known bool) {
	now, known = n.replayed[was]
	return now, known
}

// Learn notes what a match shows: ids that stand in the same place name the same. Messages with unlike numbers of ids show nothing. What
// was learnt stays, or with anew what is learnt last holds.
func (n *Names) Learn(was, now []string, anew bool) {
	if len(was) != len(now) {
		return
	}
	if n.recorded == nil && len(was) > 0 {
		n.recorded, n.replayed = make(map[string]string), make(map[string]string)
	}
	for i := range was {
		_, known := n.recorded[now[i]]
		_, taken := n.replayed[was[i]]
		if anew || !known && !taken {
			n.recorded[now[i]], n.replayed[was[i]] = was[i], now[i]
		}
	}
}

// Likeness says how many ids of a message are those of a recorded one, less those that are known to be others.
func (n *Names) Likeness(was, now []string) (like int) {
	if len(was) != len(now) {
		return 0
	}
	for i := range was {
		meant, known := n.recorded[now[i]]
		_, taken := n.replayed[was[i]]
		switch {
		case meant == was[i] || !known && now[i] == was[i]:
			like++
		case known || taken:
			like--
		}
	}
	return like
}

// Empty reports whether nothing has been learnt.
func (n *Names) Empty() bool { return len(n.replayed) == 0 }
