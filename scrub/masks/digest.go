package masks

import (
	"bytes"
	"errors"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Digest returns the digest of b by which recordings are compared: of its bytes after scrub.Renumber and Mask.
func (m *Masker) Digest(b []byte) cas.Digest { return cas.Sum(m.Mask(placeholders.Renumber(b, nil))) }

// window is how much DigestReader masks at once, in bytes.
const window = 1 << 20

// DigestReader is Digest of what r gives. Of a text of more than 1 MiB as many whole lines are masked at once as fit into that,
// so that a fact which is told from another line may stand; it is the same for equal texts. The error is r's.
func (m *Masker) DigestReader(r io.Reader) (cas.Digest, error) {
	h := cas.NewHasher()
	seen := make(map[string]int)
	buf := make([]byte, 0, window)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return cas.Digest{}, err
		}
		take := len(buf)
		if lines := bytes.LastIndexByte(buf, '\n') + 1; !ended && lines > 0 {
			take = lines
		}
		_, _ = h.Write(m.Mask(placeholders.Renumber(buf[:take], seen)))
		buf = buf[:copy(buf, buf[take:])]
		if ended {
			return h.Sum(), nil
		}
	}
}
