package packed

import (
	"errors"
	"fmt"
)

var (
	// ErrNotPacked is returned for a file that is no packed recording.
	ErrNotPacked = errors.New("not a packed recording")
	// ErrDamaged is wrapped by every refusal of a packed recording that no Writer made, or that was changed or cut since.
	ErrDamaged = errors.New("damaged packed recording")
	// ErrName is wrapped by the refusal of a name that no entry may have.
	ErrName = errors.New("no name of a file of a recording")
	// ErrFormat is wrapped by the refusal of a format that is newer than this package.
	ErrFormat = errors.New("packed by a newer tapedeck")
)

// A LimitError says that a file declares more than the caller takes.
type LimitError struct {
	What        string // "bytes" or "files"
	Have, Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the packed recording declares %d %s, and the limit is %d", e.Have, e.What, e.Limit)
}
