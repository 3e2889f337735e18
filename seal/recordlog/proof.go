package recordlog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
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
	if c.Origin, c.Tree, err = merkle.ParseHead(n.Text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if want := OriginOf(n.Sigs[0].Name); c.Origin != want {
		return nil, fmt.Errorf("%w: it is of %q, and the key signs for %q", ErrCheckpoint, c.Origin, want)
	}
	return c, nil
}

// proofHead begins a proof of an entry, oldHead one of consistency.
const (
	proofHead = "c2sp.org/tlog-proof@v1"
	oldHead   = "old "
)

// maxProof bounds a proof's hashes: no tree is deeper.
const maxProof = 64

// ErrProof is wrapped by the error of a proof that does not hold.
var ErrProof = errors.New("the proof does not hold")

// ErrNoSince is the error of VerifyProof for a proof of consistency without the checkpoint that it is about.
var ErrNoSince = errors.New("it proves that a log continues an older one: give that one's checkpoint, too (--since)")

// IsProof reports whether b begins as a proof of this package does.
func IsProof(b []byte) bool {
	return bytes.HasPrefix(b, []byte(proofHead+"\n")) || bytes.HasPrefix(b, []byte(oldHead))
}

// Prove returns a proof that entry n is in the log: a C2SP tlog-proof whose extra line holds the entry's bytes.
func (l *Log) Prove(n int64) ([]byte, error) {
	raw, err := l.raw(n)
	if err != nil {
		return nil, err
	}
	list, err := tlog.ProveRecord(l.Head.Tree.N, n, l.reader())
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", l.Dir, ErrChanged, err)
	}
	if err := tlog.CheckRecord(list, l.Head.Tree.N, l.Head.Tree.Hash, n, tlog.RecordHash(raw)); err != nil {
		return nil, fmt.Errorf("%s: %w: entry %d: %w", l.Dir, ErrChanged, n, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHead, base64.StdEncoding.EncodeToString(raw), n)
	writeHashes(&b, list)
	b.Write(l.Head.Note)
	return b.Bytes(), nil
}

// ProveSince returns a proof that the log continues the one of an older checkpoint, in the form that a witness takes.
func (l *Log) ProveSince(old *Checkpoint) ([]byte, error) {
	m, n := old.Tree.N, l.Head.Tree.N
	if m > n {
		return nil, fmt.Errorf("%s: %w: it has %d entries, and the older checkpoint is of %d: it was truncated", l.Dir, ErrChanged, n, m)
	}
	var list tlog.TreeProof
	if m > 0 && m < n {
		var err error
		if list, err = tlog.ProveTree(n, m, l.reader()); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", l.Dir, ErrChanged, err)
		}
	}
	if err := consistent(list, old.Tree, l.Head.Tree); err != nil {
		return nil, fmt.Errorf("%s: %w: it is no continuation of the older one: %w", l.Dir, ErrChanged, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", oldHead, m)
	writeHashes(&b, list)
	b.Write(l.Head.Note)
	return b.Bytes(), nil
}

// consistent reports whether newer continues old.
func consistent(list tlog.TreeProof, old, newer tlog.Tree) error {
	switch {
	case old.N == 0 || old.N == newer.N:
		if len(list) > 0 || old.N == newer.N && old.Hash != newer.Hash {
			return errors.New("the roots of two logs of one size differ")
		}
		return nil
	case old.N > newer.N:
		return errors.New("the newer log is shorter")
	}
	return tlog.CheckTree(list, newer.N, newer.Hash, old.N, old.Hash)
}

func writeHashes(b *bytes.Buffer, list []tlog.Hash) {
	for _, h := range list {
		fmt.Fprintf(b, "%s\n", h)
	}
	b.WriteByte('\n')
}

// A Proven is what a proof of this package shows.
type Proven struct {
	Head  *Checkpoint
	Entry *Entry // nil of a proof of consistency
	Index int64  // of the entry
	Old   int64  // of a proof of consistency: the size of the older log
}

// VerifyProof checks a proof with nothing but keys; one of consistency with the older checkpoint, too. The error wraps ErrProof or
// ErrCheckpoint.
func VerifyProof(b, since []byte, keys ...note.Verifier) (*Proven, error) {
	head, rest, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		return nil, fmt.Errorf("%w: there is no empty line before the checkpoint", ErrProof)
	}
	c, err := ParseCheckpoint(rest, keys...)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(head), "\n")
	p := &Proven{Head: c, Index: -1}
	if strings.HasPrefix(lines[0], oldHead) {
		return p, p.checkSince(lines, since, keys)
	}
	return p, p.checkEntry(lines)
}

func (p *Proven) checkEntry(lines []string) error {
	if len(lines) < 3 || lines[0] != proofHead || !strings.HasPrefix(lines[1], "extra ") || !strings.HasPrefix(lines[2], "index ") {
		return fmt.Errorf("%w: want the lines %s, extra and index", ErrProof, proofHead)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(lines[1][len("extra "):])
	if err != nil {
		return fmt.Errorf("%w: extra: %w", ErrProof, err)
	}
	if p.Index, err = parseCount(lines[2][len("index "):]); err != nil {
		return err
	}
	list, err := parseHashes(lines[3:])
	if err != nil {
		return err
	}
	if p.Index >= p.Head.Tree.N {
		return fmt.Errorf("%w: entry %d of a log of %d", ErrProof, p.Index, p.Head.Tree.N)
	}
	if err := tlog.CheckRecord(list, p.Head.Tree.N, p.Head.Tree.Hash, p.Index, tlog.RecordHash(raw)); err != nil {
		return fmt.Errorf("%w: entry %d is not in the log of the checkpoint", ErrProof, p.Index)
	}
	if p.Entry, err = ParseEntry(raw); err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	return nil
}

func (p *Proven) checkSince(lines []string, since []byte, keys []note.Verifier) error {
	if since == nil {
		return ErrNoSince
	}
	old, err := ParseCheckpoint(since, keys...)
	if err != nil {
		return err
	}
	if p.Old, err = parseCount(lines[0][len(oldHead):]); err != nil {
		return err
	}
	list, err := parseHashes(lines[1:])
	if err != nil {
		return err
	}
	if p.Old != old.Tree.N || old.Origin != p.Head.Origin {
		return fmt.Errorf("%w: it is since %d entries of %s, the older checkpoint has %d of %s", ErrProof, p.Old, p.Head.Origin,
			old.Tree.N, old.Origin)
	}
	if err := consistent(list, old.Tree, p.Head.Tree); err != nil {
		return fmt.Errorf("%w: the log of the newer checkpoint does not continue the older one's", ErrProof)
	}
	return nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%w: %q is no count", ErrProof, s)
	}
	return n, nil
}

func parseHashes(lines []string) ([]tlog.Hash, error) {
	if len(lines) > maxProof {
		return nil, fmt.Errorf("%w: %d hashes, want %d at most", ErrProof, len(lines), maxProof)
	}
	var out []tlog.Hash
	for _, l := range lines {
		h, err := tlog.ParseHash(l)
		if err != nil || h.String() != l {
			return nil, fmt.Errorf("%w: %q is no hash in base64", ErrProof, l)
		}
		out = append(out, h)
	}
	return out, nil
}
