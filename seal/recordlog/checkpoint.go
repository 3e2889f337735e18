package recordlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// OriginOf is the origin of the log of the key name: the first line of its checkpoints.
func OriginOf(keyName string) string { return keyName + "/log" }

// A Checkpoint is a signed head of a log.
type Checkpoint struct {
	Origin string
	Tree   tlog.Tree
	Text   string // what is signed
	Note   []byte // as it stands
	Others []note.Signature
}

// ErrCheckpoint is wrapped by the error of a checkpoint that is none, or that the key did not sign.
var ErrCheckpoint = errors.New("the log's checkpoint does not hold")

// ParseCheckpoint reads a checkpoint that one of keys signed, as the log that is called after that key.
func ParseCheckpoint(b []byte, keys ...note.Verifier) (*Checkpoint, error) {
	n, err := note.Open(b, note.VerifierList(keys...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	for _, sig := range n.Sigs {
		if _, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil {
			return nil, fmt.Errorf("%w: the signature of %s: %w", ErrCheckpoint, sig.Name, err)
		}
	}
	c := &Checkpoint{Text: n.Text, Note: b, Others: n.UnverifiedSigs}
	if c.Origin, c.Tree, err = parseHead(n.Text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if want := OriginOf(n.Sigs[0].Name); c.Origin != want {
		return nil, fmt.Errorf("%w: it is of %q, and the key signs for %q", ErrCheckpoint, c.Origin, want)
	}
	return c, nil
}

// parseHead reads the three lines of a checkpoint; there are no others.
func parseHead(text string) (origin string, t tlog.Tree, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return "", t, errors.New("want three lines: origin, size, root")
	}
	t.N, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || t.N < 0 || strconv.FormatInt(t.N, 10) != lines[1] {
		return "", t, fmt.Errorf("size %q is no count", lines[1])
	}
	t.Hash, err = tlog.ParseHash(lines[2])
	if err != nil || t.Hash.String() != lines[2] {
		return "", t, fmt.Errorf("root %q is no hash in base64", lines[2])
	}
	return lines[0], t, nil
}

// signHead signs a head.
func signHead(t tlog.Tree, s note.Signer) ([]byte, error) {
	return note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", OriginOf(s.Name()), t.N, t.Hash)}, s)
}
