package exchange

// socketNames say which id of a replay stands for which of the recording, on one socket. A program that makes ids up makes others in
// each run, and waits for an answer that names its own.
type socketNames struct {
	recorded map[string]string // by the replay's
	replayed map[string]string // by the recording's
}

// learn notes what a match shows: ids in the same place name the same. What is learnt last holds.
func (n *socketNames) learn(was, now []string) {
	if len(was) != len(now) {
		return
	}
	if n.recorded == nil && len(was) > 0 {
		n.recorded, n.replayed = make(map[string]string), make(map[string]string)
	}
	for i := range was {
		n.recorded[now[i]], n.replayed[was[i]] = was[i], now[i]
	}
}

// likeness says how many ids of a message are those of a recorded one, less those that are known to be others.
func (n *socketNames) likeness(was, now []string) (like int) {
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

// rename puts the program's own ids into a message of the server.
func (n *socketNames) rename(c Classifier, message []byte) []byte {
	r, ok := c.(SocketClassifier)
	if !ok || len(n.replayed) == 0 {
		return message
	}
	return r.Rename(message, func(id string) string { return n.replayed[id] })
}
