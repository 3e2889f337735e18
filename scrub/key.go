package scrub

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A Key makes a project's placeholders. Who has it can test guesses of a secret, so it is as private as a password.
type Key [32]byte

// ErrKeyFile is wrapped by the errors of LoadKey for a file that is there and cannot be taken: others may read it, or it
// is not 64 hex digits.
var ErrKeyFile = errors.New("scrub: key file refused")

// LoadKey reads the key at path, and makes one where there is none: the directory with mode 0700, the file with 0600.
// The file appears whole or not at all, and of two processes that make it at once both get the same key. The file holds
// 64 hex digits and a newline. One that the group or others may touch is refused (not on Windows, which has no such
// modes): the errors of refused files wrap ErrKeyFile.
func LoadKey(path string) (Key, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Key{}, fmt.Errorf("scrub: make key: %w", err)
	}
	return ReadKey(path)
}

// ReadKey reads the key at path and makes none: the error of one that is not there wraps fs.ErrNotExist.
func ReadKey(path string) (key Key, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return key, fmt.Errorf("scrub: read key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return key, fmt.Errorf("%w: %s has mode %04o: others may touch it; run chmod 600 on it", ErrKeyFile, path,
			info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("scrub: read key: %w", err)
	}
	s := strings.TrimSpace(string(b))
	if n, err := hex.Decode(key[:], []byte(s[:min(len(s), 2*len(key))])); err != nil || n < len(key) || len(s) > 2*n {
		return Key{}, fmt.Errorf("%w: %s does not hold 64 hex digits: put it back from a copy, or move it away and a new one is made "+
			"(recordings of the old one then replay without the files that held secrets)", ErrKeyFile, path)
	}
	return key, nil
}

// createKey writes the key beside its place and links it there, which fails with fs.ErrExist where another was faster.
func createKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var key Key
	_, _ = rand.Read(key[:]) // never fails
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// keyIDOf is what a key's id is the keyed digest of: no file's bytes and no secret.
const keyIDOf = "\x00tapedeck: the id of a project's key"

// ID names the key, and says nothing else of it: hexLen hex digits.
func (k *Key) ID() string { return k.digits([]byte(keyIDOf)) }

func (k *Key) mac(b []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// digits are those of the placeholder of value.
func (k *Key) digits(value []byte) string { return k.mac(value)[:placeholders.HexLen] }

// placeholder returns what stands for value in everything that is written.
func (k *Key) placeholder(rule string, value []byte) string {
	return placeholders.Prefix + rule + "_" + k.digits(value)
}
