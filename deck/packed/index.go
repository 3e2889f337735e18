package packed

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Format is the format number that this package writes, and the highest that it reads.
const Format = 1

const (
	indexName = "pack.json"
	maxIndex  = 4 << 10 // bytes
)

// An Index is the first entry: what follows, so that a reader knows before it writes anything.
type Index struct {
	Format int    `json:"format"`
	ID     string `json:"id"`    // of the recording
	State  string `json:"state"` // of the recording
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"` // of all files together
}

func (ix *Index) encode() ([]byte, error) {
	b, err := json.Marshal(ix)
	if err == nil && len(b) >= maxIndex {
		err = fmt.Errorf("the index of a packed recording has more than %d bytes", maxIndex)
	}
	return append(b, '\n'), err
}

// decodeIndex reads what encode wrote, and nothing else.
func decodeIndex(b []byte) (*Index, error) {
	ix := new(Index)
	if err := json.Unmarshal(b, ix); err != nil {
		return nil, fmt.Errorf("%w: its index: %w", ErrDamaged, err)
	}
	if ix.Format > Format {
		return nil, fmt.Errorf("%w: format %d, and this one reads up to %d", ErrFormat, ix.Format, Format)
	}
	again, err := ix.encode()
	if err != nil || !bytes.Equal(again, b) || ix.Format < 1 || ix.Files < 0 || ix.Bytes < 0 {
		return nil, fmt.Errorf("%w: its index is not one that pack writes", ErrDamaged)
	}
	return ix, nil
}
