package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

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
