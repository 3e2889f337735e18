package cassette

import (
	"bytes"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// keys writes the input on. What is typed is held until it is known to be no secret, and what comes behind it with it: lines stay
// in the order of seq.
type keys struct {
	out     *stream
	mask    *tty.Input
	pending []*Input
	done    int // bytes of the first pending one that are masked already
}

func newKeys(out *stream, o *tty.Options) *keys {
	return &keys{out: out, mask: tty.NewInput(o)}
}

// held is how many inputs wait.
func (k *keys) held() int { return len(k.pending) }

// add takes one more.
func (k *keys) add(in *Input, at time.Duration) error {
	k.pending = append(k.pending, in)
	if len(in.Bytes) > 0 {
		k.mask.Write(in.Bytes, at)
	}
	return nil
}

// write writes the inputs whose bytes p completes.
func (k *keys) write(p []byte) error {
	for len(k.pending) > 0 {
		in := k.pending[0]
		n := min(len(in.Bytes)-k.done, len(p))
		if !bytes.Equal(in.Bytes[k.done:k.done+n], p[:n]) {
			in.Key = "" // it may name what was typed
			copy(in.Bytes[k.done:], p[:n])
		}
		k.done += n
		p = p[n:]
		if k.done < len(in.Bytes) {
			return nil
		}
		k.pending, k.done = k.pending[1:], 0
		if err := k.out.line(in); err != nil {
			return err
		}
	}
	return nil
}
