package seal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"golang.org/x/mod/sumdb/note"
)

// The signature types of C2SP signed-note that are understood here.
const (
	typeEd25519     = 0x01
	typeCosignature = 0x04
)

// ErrKeyText is wrapped by the refusal of a text that is no key.
var ErrKeyText = errors.New("not a key")

// A PublicKey checks the signature of a seal, or of a witness. It is comparable; the zero PublicKey stands for "none".
type PublicKey struct {
	name string
	kind byte // its type of signature
	key  [ed25519.PublicKeySize]byte
}

// ParsePublicKey reads the one text of a key, NAME+ID+BASE64, as seal.pub has it (without the newline). The type of a sealing key
// is 0x01, that of a witness 0x04 (C2SP signed-note, tlog-cosignature). The error wraps ErrKeyText.
func ParsePublicKey(text string) (PublicKey, error) {
	name, rest, _ := strings.Cut(text, "+")
	id, b64, ok := strings.Cut(rest, "+")
	b, err := base64.StdEncoding.Strict().DecodeString(b64)
	if !ok || err != nil || !validName(name) || len(b) != 1+ed25519.PublicKeySize {
		return PublicKey{}, fmt.Errorf("%w: %.120q: expected NAME+ID+BASE64 of an Ed25519 key, as seal.pub has it", ErrKeyText, text)
	}
	k := PublicKey{name: name, kind: b[0], key: [ed25519.PublicKeySize]byte(b[1:])}
	if k.kind != typeEd25519 && k.kind != typeCosignature {
		return PublicKey{}, fmt.Errorf("%w: %.120q: signature type %#02x, expected 0x01 (a seal's) or 0x04 (a witness's)", ErrKeyText, text, k.kind)
	}
	if k.String() != text {
		return PublicKey{}, fmt.Errorf("%w: %.120q: its id is %s for that name and key: the text is damaged", ErrKeyText, text, id)
	}
	return k, nil
}

// validName reports whether a name may stand in a note and in an origin.
func validName(name string) bool {
	if name == "" || len(name) > 200 || !utf8.ValidString(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r) })
}

// Name returns the key's name, which the origin of its seals begins with.
func (k PublicKey) Name() string { return k.name }

// KeyHash returns the key id that stands in its signatures.
func (k PublicKey) KeyHash() uint32 {
	h := sha256.New()
	h.Write([]byte(k.name + "\n"))
	h.Write([]byte{k.kind})
	h.Write(k.key[:])
	return binary.BigEndian.Uint32(h.Sum(nil))
}

// Verify reports whether sig is the key's signature of a note's text. That of a witness holds its time, too.
func (k PublicKey) Verify(text, sig []byte) bool {
	if k.kind == typeCosignature {
		_, ok := k.cosigned(text, sig)
		return ok
	}
	return ed25519.Verify(k.key[:], text, sig)
}

// cosigned returns the time, in seconds since 1970, at which a witness signed text (C2SP tlog-cosignature).
func (k PublicKey) cosigned(text, sig []byte) (seconds int64, ok bool) {
	if len(sig) != 8+ed25519.SignatureSize {
		return 0, false
	}
	at := binary.BigEndian.Uint64(sig)
	if at > 1<<63-1 {
		return 0, false
	}
	msg := append([]byte("cosignature/v1\ntime "+strconv.FormatUint(at, 10)+"\n"), text...)
	return int64(at), ed25519.Verify(k.key[:], msg, sig[8:])
}

// Witness reports whether the key is one of a witness.
func (k PublicKey) Witness() bool { return k.kind == typeCosignature }

// IsZero reports whether k stands for "none".
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

// String returns the key's text, "" of the zero key.
func (k PublicKey) String() string {
	if k.IsZero() {
		return ""
	}
	b := append([]byte{k.kind}, k.key[:]...)
	return fmt.Sprintf("%s+%08x+%s", k.name, k.KeyHash(), base64.StdEncoding.EncodeToString(b))
}

// Digest returns the first 12 hex digits of the SHA-256 of the 32 bytes of the key, for people.
func (k PublicKey) Digest() string {
	sum := sha256.Sum256(k.key[:])
	return hex.EncodeToString(sum[:6])
}

// MarshalText returns the key's text.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// A Key signs seals. Who has it can seal anything, so it is as private as a password.
type Key struct {
	public  PublicKey
	private ed25519.PrivateKey
	made    bool
}

// NewKey makes a key. An empty name becomes "tapedeck/" and the key's Digest.
func NewKey(name string) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return newKey(name, private)
}

func newKey(name string, private ed25519.PrivateKey) (*Key, error) {
	k := &Key{public: PublicKey{name: name, kind: typeEd25519}, private: private}
	copy(k.public.key[:], private.Public().(ed25519.PublicKey))
	if name == "" {
		k.public.name = "tapedeck/" + k.public.Digest()
	}
	if !validName(k.public.name) {
		return nil, fmt.Errorf("%w: name %.120q: expected 1 to 200 bytes of UTF-8 without spaces and '+'", ErrKeyText, name)
	}
	return k, nil
}

// Public returns the half that checks the seals of k.
func (k *Key) Public() PublicKey { return k.public }

// Made reports whether LoadKey made the key just now.
func (k *Key) Made() bool { return k.made }

// Name implements note.Signer.
func (k *Key) Name() string { return k.public.name }

// KeyHash implements note.Signer.
func (k *Key) KeyHash() uint32 { return k.public.KeyHash() }

// Sign implements note.Signer.
func (k *Key) Sign(text []byte) ([]byte, error) { return ed25519.Sign(k.private, text), nil }

var (
	_ note.Signer   = (*Key)(nil)
	_ note.Verifier = PublicKey{}
)

const privatePrefix = "PRIVATE+KEY+"

// text is what seal.key holds: the signer key of package note.
func (k *Key) text() string {
	b := append([]byte{typeEd25519}, k.private.Seed()...)
	return fmt.Sprintf("%s%s+%08x+%s", privatePrefix, k.public.name, k.KeyHash(), base64.StdEncoding.EncodeToString(b))
}

// parseKey reads the text of a private key. No error repeats any of it.
func parseKey(text string) (*Key, error) {
	bad := fmt.Errorf("%w: expected PRIVATE+KEY+NAME+ID+BASE64 on one line", ErrKeyText)
	rest, ok := strings.CutPrefix(text, privatePrefix)
	name, rest, _ := strings.Cut(rest, "+")
	_, b64, _ := strings.Cut(rest, "+")
	b, err := base64.StdEncoding.Strict().DecodeString(b64)
	if !ok || err != nil || len(b) != 1+ed25519.SeedSize || b[0] != typeEd25519 || name == "" {
		return nil, bad
	}
	k, err := newKey(name, ed25519.NewKeyFromSeed(b[1:]))
	if err != nil {
		return nil, bad
	}
	if k.text() != text {
		return nil, fmt.Errorf("%w: the id does not fit name and key: the text is damaged", ErrKeyText)
	}
	return k, nil
}

// The names of a sealing key's files, in one directory.
const (
	PrivateKeyFile = "seal.key" // mode 0600
	PublicKeyFile  = "seal.pub"
	lockFile       = ".seal.lock"
)

// The refusals of LoadKey. None is ever mended by making another key.
var (
	// ErrKeyFile: a key's file is there and cannot be taken: malformed, or others may touch it.
	ErrKeyFile = errors.New("key file refused")
	// ErrKeyLost: seal.pub is there and seal.key is not.
	ErrKeyLost = errors.New("the private sealing key is gone")
	// ErrKeyMismatch: seal.pub is not the public half of seal.key.
	ErrKeyMismatch = errors.New("the two halves of the sealing key do not fit")
)

// maxKeyFile bounds what is read of a key's file, in bytes.
const maxKeyFile = 1 << 20

// LoadKey reads the sealing key in the directory dir, and makes one where there is neither seal.key nor seal.pub: the
// directory with mode 0700, seal.key with 0600, seal.pub with 0644. Each file appears whole or not at all, seal.key first, and
// of several processes that make it at once all get the same key. A seal.pub that is missing beside a seal.key is written again.
//
// A private key that is gone is never replaced silently: the error then wraps ErrKeyLost; it wraps ErrKeyFile or
// ErrKeyMismatch for files that cannot be taken. Each says how to go on.
func LoadKey(dir string) (*Key, error) {
	k, err := readKeys(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sealing key: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return nil, fmt.Errorf("make the sealing key: %w", err)
	}
	defer lock.Unlock() //nolint:errcheck // the kernel releases it at the latest when the process ends
	if k, err = readKeys(dir); !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	return makeKeys(dir)
}

// makeKeys writes a new pair under the lock.
func makeKeys(dir string) (*Key, error) {
	k, err := NewKey("")
	if err != nil {
		return nil, err
	}
	private, public := filepath.Join(dir, PrivateKeyFile), filepath.Join(dir, PublicKeyFile)
	if err := durable.WriteFile(private, []byte(k.text()+"\n"), &durable.Options{Sync: true, Mode: 0o600}); err != nil {
		return nil, fmt.Errorf("make the sealing key: %w", err)
	}
	if err := writePublic(public, k); err != nil {
		return nil, err
	}
	k.made = true
	return k, nil
}

func writePublic(path string, k *Key) error {
	err := durable.WriteFile(path, []byte(k.Public().String()+"\n"), &durable.Options{Sync: true, Mode: 0o644})
	if err != nil {
		return fmt.Errorf("write the public half of the sealing key: %w", err)
	}
	return nil
}

// readKeys reads the pair. The error wraps fs.ErrNotExist where there is neither.
func readKeys(dir string) (*Key, error) {
	private, public := filepath.Join(dir, PrivateKeyFile), filepath.Join(dir, PublicKeyFile)
	pub, errPub := ReadPublicKeys(public) // before the other, which is written first: who sees the second one finds both
	k, err := readPrivate(private)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errPub == nil:
		return nil, fmt.Errorf("%w: %s is not there, and %s (%s) is: put it back from a backup; to go on with a new key move %s "+
			"away, and keep it, for it still checks the seals made so far", ErrKeyLost, private, public, pub[0].Name(), public)
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(errPub, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is not there, and %s cannot be read: %w", ErrKeyLost, private, public, errPub)
	case err != nil:
		return nil, err
	case errors.Is(errPub, fs.ErrNotExist):
		return k, writePublic(public, k)
	case errPub != nil:
		return nil, fmt.Errorf("%w: move it away, and it is written again from %s", errPub, private)
	case len(pub) != 1 || pub[0] != k.Public():
		return nil, fmt.Errorf("%w: %s is %s, and %s is of %s: one of them was exchanged; put back the pair that you sealed with, "+
			"or, where %s is the right one, move %s away", ErrKeyMismatch, public, pub[0], private, k.Public(), private, public)
	}
	return k, nil
}

// readPrivate reads seal.key.
func readPrivate(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrKeyFile, path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s has mode %04o: others may touch it; run chmod 600 on it", ErrKeyFile, path, info.Mode().Perm())
	}
	b, err := readBounded(path, maxKeyFile)
	if err != nil {
		return nil, err
	}
	k, err := parseKey(strings.TrimSuffix(string(b), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; put it back from a backup, or move it and %s away to begin with a new key",
			ErrKeyFile, path, err, PublicKeyFile)
	}
	return k, nil
}

// ReadPublicKeys reads the keys in a file such as seal.pub: one a line, blank lines and lines that begin with '#' do not count.
// The error wraps ErrKeyFile where a line is no key, or none is.
func ReadPublicKeys(path string) ([]PublicKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a directory", ErrKeyFile, path)
	}
	b, err := readBounded(path, maxKeyFile)
	if err != nil {
		return nil, err
	}
	keys, err := parsePublicKeys(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKeyFile, path, err)
	}
	return keys, nil
}

func parsePublicKeys(b []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for i, line := range bytes.Split(b, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		k, err := ParsePublicKey(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: no line holds one", ErrKeyText)
	}
	return keys, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := openNoWait(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrKeyFile, path, limit)
	}
	return b, nil
}
