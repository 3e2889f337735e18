package seal

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// maxSignatures is how many lines of signatures a checkpoint may have; package note takes as many.
const maxSignatures = 100

// origin is the first line of a checkpoint.
func origin(key, id string) string { return key + "/recording/" + id }

// validID reports whether an id may stand in an origin.
func validID(id string) bool { return validName(id) }

// checkpointText is what is signed.
func checkpointText(key PublicKey, id string, tree tlog.Tree) string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin(key.Name(), id), tree.N, tree.Hash)
}

// sign makes the checkpoint of a tree.
func sign(k *Key, id string, tree tlog.Tree) (string, error) {
	b, err := note.Sign(&note.Note{Text: checkpointText(k.Public(), id, tree)}, k)
	return string(b), err
}

// A signature is one line of a checkpoint's.
type signature struct {
	name string
	id   uint32
	sig  []byte
}

func (s *signature) String() string { return fmt.Sprintf("%s+%08x", s.name, s.id) }

// of reports whether the line says that it is of key.
func (s *signature) of(key PublicKey) bool { return s.name == key.Name() && s.id == key.KeyHash() }

// A checkpoint is a signed note, taken apart. Only one text gives it.
type checkpoint struct {
	origin string
	tree   tlog.Tree
	text   string // what is signed
	sigs   []signature
}

// parseCheckpoint reads a checkpoint in the one form that C2SP gives it: no extension lines, base64 with padding and without
// spare bits, no key twice.
func parseCheckpoint(s string) (*checkpoint, error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 && r != '\n' }) {
		return nil, fmt.Errorf("a checkpoint is UTF-8 without control characters")
	}
	text, block, ok := cutLast(s, "\n\n")
	if !ok {
		return nil, fmt.Errorf("a checkpoint is a text, an empty line and signatures; there is no empty line")
	}
	c := &checkpoint{text: text + "\n"}
	if err := c.parseText(); err != nil {
		return nil, err
	}
	return c, c.parseSignatures(block)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (c *checkpoint) parseText() error {
	lines := strings.Split(c.text, "\n")
	if len(lines) != 4 || lines[0] == "" {
		return fmt.Errorf("a checkpoint's text is origin, size and root, a line each; it has %d lines", len(lines)-1)
	}
	n, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != lines[1] {
		return fmt.Errorf("a checkpoint's size is a decimal number; it is %.40q", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize || base64.StdEncoding.EncodeToString(root) != lines[2] {
		return fmt.Errorf("a checkpoint's root is 32 bytes in base64; it is %.80q", lines[2])
	}
	c.origin, c.tree = lines[0], tlog.Tree{N: n, Hash: tlog.Hash(root)}
	return nil
}

func (c *checkpoint) parseSignatures(block string) error {
	body, ok := strings.CutSuffix(block, "\n")
	if !ok {
		return fmt.Errorf("a checkpoint ends with signatures, a line each, and its last line has no end")
	}
	lines := strings.Split(body, "\n")
	if len(lines) > maxSignatures {
		return fmt.Errorf("a checkpoint has at most %d signatures; it has %d", maxSignatures, len(lines))
	}
	for _, line := range lines {
		s, err := parseSignature(line)
		if err != nil {
			return err
		}
		for _, before := range c.sigs {
			if before.name == s.name && before.id == s.id {
				return fmt.Errorf("two signatures by %s", s)
			}
		}
		c.sigs = append(c.sigs, *s)
	}
	return nil
}

func parseSignature(line string) (*signature, error) {
	rest, ok := strings.CutPrefix(line, "— ")
	name, b64, _ := strings.Cut(rest, " ")
	b, err := base64.StdEncoding.Strict().DecodeString(b64)
	if !ok || err != nil || !validName(name) || len(b) < 5 || base64.StdEncoding.EncodeToString(b) != b64 {
		return nil, fmt.Errorf("a signature is \"— NAME BASE64\"; it is %.120q", line)
	}
	return &signature{name: name, id: binary.BigEndian.Uint32(b), sig: b[4:]}, nil
}

// signedBy returns a problem unless key has signed.
func (c *checkpoint) signedBy(key PublicKey, path string) *Problem {
	for i := range c.sigs {
		if s := &c.sigs[i]; s.of(key) {
			if key.Verify([]byte(c.text), s.sig) {
				return nil
			}
			return problem(CodeSignature, path, "the signature of %s+%08x does not hold: the checkpoint was changed, or another key of that "+
				"name and id made it", key.Name(), key.KeyHash())
		}
	}
	return problem(CodeSignature, path, "it is not signed by the key that it names, %s+%08x", key.Name(), key.KeyHash())
}

// A verdict is what the signatures of a checkpoint are worth to who asks.
type verdict struct {
	signer   PublicKey
	known    bool
	cosigned []Cosignature
	unknown  []string
	problems []Problem
}

// judge checks every signature that somebody's key is known of.
func (c *checkpoint) judge(path string, key PublicKey, keys, witnesses []PublicKey) *verdict {
	v := &verdict{}
	if p := c.signedBy(key, path); p != nil {
		v.problems = append(v.problems, *p)
	} else {
		v.signer = key
	}
	for _, k := range keys {
		v.known = v.known || k == key && !v.signer.IsZero()
	}
	if len(keys) > 0 && !v.known && !v.signer.IsZero() {
		v.problems = append(v.problems, *problem(CodeSigner, path, "it is signed by %s, expected %s: it was sealed by somebody else, or with "+
			"another key", key, names(keys)))
	}
	for _, w := range witnesses {
		v.witness(c, path, w)
	}
	for i := range c.sigs {
		if s := &c.sigs[i]; !s.of(key) && !anyOf(witnesses, s) {
			v.unknown = append(v.unknown, s.String())
		}
	}
	return v
}

// witness checks that w has cosigned.
func (v *verdict) witness(c *checkpoint, path string, w PublicKey) {
	for i := range c.sigs {
		s := &c.sigs[i]
		if !s.of(w) {
			continue
		}
		at, ok := w.cosigned([]byte(c.text), s.sig)
		if !ok || !w.Witness() {
			v.problems = append(v.problems, *problem(CodeWitness, path, "the cosignature of %s does not hold", s))
			return
		}
		v.cosigned = append(v.cosigned, Cosignature{Witness: w, Time: time.Unix(at, 0).UTC()})
		return
	}
	v.problems = append(v.problems, *problem(CodeWitness, path, "%s+%08x has not cosigned it", w.Name(), w.KeyHash()))
}

func anyOf(keys []PublicKey, s *signature) bool {
	for _, k := range keys {
		if s.of(k) {
			return true
		}
	}
	return false
}

func names(keys []PublicKey) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.String()
	}
	return strings.Join(all, " or ")
}

// A Code says what does not hold, for programs. Codes stay what they are once released.
type Code string

// The codes of a Problem.
const (
	// Of seal.json and of a proof.
	CodeTooLarge     Code = "too-large"     // larger than a reader takes
	CodeNotJSON      Code = "not-json"      // no JSON, or nested deeper than a reader follows
	CodeDuplicateKey Code = "duplicate-key" // a key stands twice in one object
	CodeMalformed    Code = "malformed"     // JSON, and not the form that it must have
	CodeNotCanonical Code = "not-canonical" // the right members in another form than RFC 8785's
	CodeVersion      Code = "version"       // of a later format

	// Of the checkpoint.
	CodeCheckpoint Code = "checkpoint" // no checkpoint, or one of other streams or another id
	CodeSignature  Code = "signature"  // not signed by the key that the seal names
	CodeSigner     Code = "signer"     // signed by none of the keys asked for
	CodeWitness    Code = "witness"    // a witness that was asked for has not cosigned, or its signature does not hold
	CodeID         Code = "id"         // the seal of another recording

	// Of the files.
	CodeMissing    Code = "missing"     // a sealed file or blob is not there
	CodeUnlisted   Code = "unlisted"    // a file or blob that was not sealed
	CodeNotRegular Code = "not-regular" // a symlink, FIFO, device or socket, or a directory in a file's place
	CodeName       Code = "name"        // a sealed file is there under a name that differs in case or form alone
	CodeChanged    Code = "changed"     // other bytes than those that were sealed
	CodeBlob       Code = "blob"        // a blob's bytes do not hash to its name
	CodeReordered  Code = "reordered"   // the leaves are those that were sealed, in another order
	CodeRemoved    Code = "removed"     // leaves were taken out
	CodeAdded      Code = "added"       // leaves were put in
	CodeCut        Code = "cut"         // the end of a stream is missing
	CodeUnreadable Code = "unreadable"  // it is there and cannot be read
	CodeTiles      Code = "tiles"       // seal.tiles/ does not hold what it must

	// Of a proof.
	CodeProof   Code = "proof"   // a path does not lead to the root that is signed
	CodePayload Code = "payload" // bytes that the leaf does not name
)

// A Problem is one thing that does not hold, with where.
type Problem struct {
	Code    Code   `json:"code"`
	Path    string `json:"path"`           // relative to the recording's directory, with '/'
	Line    int64  `json:"line,omitempty"` // from 1, where a line is meant
	Leaf    int64  `json:"leaf"`           // of the stream's tree, from 0; -1 where none is meant
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// problem makes one that is about no leaf.
func problem(code Code, path, format string, args ...any) *Problem {
	return &Problem{Code: code, Path: path, Leaf: -1, Message: fmt.Sprintf(format, args...)}
}
