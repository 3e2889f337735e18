package recordlog

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
)

// An Entry is one recording as the log lists it.
type Entry struct {
	Checkpoint string `json:"checkpoint"` // hex SHA-256 of the text that the recording's seal signs
	ID         string `json:"id"`         // of the recording
	Key        string `json:"key"`        // who signed its seal: a verifier key
	Path       string `json:"path"`       // where it lay, relative to the log's directory where that can be; a hint
	Root       string `json:"root"`       // base64 of the seal's root hash
	Time       string `json:"time"`       // when it was added, RFC 3339 in UTC: as the log's owner says
}

// maxEntry bounds an entry in bytes: its length is two bytes.
const maxEntry = 1<<16 - 1

// encode returns the entry's bytes in the log.
func (e *Entry) encode() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(e)
	if err == nil {
		b, err = canonjson.Canonical(b)
	}
	if err == nil && len(b) > maxEntry {
		err = fmt.Errorf("an entry of %d bytes, want %d at most", len(b), maxEntry)
	}
	return b, err
}

// ParseEntry reads one entry, which must stand in the form that this package writes.
func ParseEntry(b []byte) (*Entry, error) {
	e := new(Entry)
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	own, err := e.encode()
	if err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	if string(own) != string(b) {
		return nil, errors.New("entry: it is not in canonical form, or has keys that no entry has")
	}
	return e, nil
}

func (e *Entry) check() error {
	sum, err := hex.DecodeString(e.Checkpoint)
	if err != nil || len(sum) != 32 || hex.EncodeToString(sum) != e.Checkpoint {
		return fmt.Errorf("checkpoint %q is no SHA-256 in lower case hex", e.Checkpoint)
	}
	root, err := base64.StdEncoding.Strict().DecodeString(e.Root)
	if err != nil || len(root) != 32 {
		return fmt.Errorf("root %q is no hash in base64", e.Root)
	}
	at, err := time.Parse(time.RFC3339, e.Time)
	if err != nil || at.UTC().Format(time.RFC3339) != e.Time {
		return fmt.Errorf("time %q is not RFC 3339 in UTC", e.Time)
	}
	if e.ID == "" || e.Key == "" {
		return errors.New("an entry needs an id and a key")
	}
	for _, s := range []string{e.ID, e.Key, e.Path} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}

// same reports whether two entries are of one seal.
func (e *Entry) same(o *Entry) bool {
	return e.ID == o.ID && e.Checkpoint == o.Checkpoint && e.Root == o.Root && e.Key == o.Key
}

// tilePath is the path of tile n of a level, w hashes wide, below the log's directory, with slashes. Level "entries" has the
// entries.
func tilePath(level string, n int64, w int) string {
	s := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		s = fmt.Sprintf("x%03d/%s", n%1000, s)
	}
	if w != merkle.Width {
		s += fmt.Sprintf(".p/%d", w)
	}
	return "tile/" + level + "/" + s
}

func levelPath(level int, n int64, w int) string { return tilePath(fmt.Sprint(level), n, w) }

const entriesLevel = "entries"
