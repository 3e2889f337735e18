//go:build linux || darwin

package terminal

import "golang.org/x/sys/unix"

// SignalsOf names the signals that p's terminal makes of keys, in the modes that the program has given it.
func (p *PTY) SignalsOf(keys []byte) (names []string) {
	t, err := modesOf(p.Master)
	if err != nil || t.Lflag&unix.ISIG == 0 {
		return nil
	}
	for _, k := range keys {
		switch k {
		case 0: // what is switched off
		case t.Cc[unix.VINTR]:
			names = append(names, "SIGINT")
		case t.Cc[unix.VQUIT]:
			names = append(names, "SIGQUIT")
		case t.Cc[unix.VSUSP]:
			names = append(names, "SIGTSTP")
		}
	}
	return names
}
