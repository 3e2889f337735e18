package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Size is how many random bytes a token has.
const Size = 32

// A Pair is the two tokens of a daemon.
type Pair struct {
	Agent string // lets an agent in
	Host  string // the host role, which reads everything
}

// New makes a pair.
func New() Pair { return Pair{Agent: random(), Host: random()} }

func random() string {
	var b [Size]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Equal compares a token with what somebody says it is, in time that depends on neither. An empty token equals nothing.
func Equal(token, said string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(said))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && token != ""
}

// Names of the files.
const (
	agentFile = "token"
	hostFile  = "host-token"
)

// A Kept pair is in files.
type Kept struct {
	pair Pair
	dirs []string
}

// Write puts a pair in files for each of the addresses at which the daemon is reached: a URL (ws://host:port, unix:PATH) or
// host:port. base is the directory in place of the XDG runtime one, "" for that.
func Write(base string, p Pair, addrs ...string) (*Kept, error) {
	k := &Kept{pair: p}
	for _, addr := range addrs {
		if err := k.add(base, addr); err != nil {
			k.Remove()
			return nil, fmt.Errorf("write the tokens for %s: %w", addr, err)
		}
	}
	return k, nil
}

func (k *Kept) add(base, addr string) error {
	dir, err := Dir(base, addr)
	if err != nil {
		return err
	}
	if err := private(dir); err != nil {
		return err
	}
	k.dirs = append(k.dirs, dir)
	if err := write(filepath.Join(dir, agentFile), k.pair.Agent); err != nil {
		return err
	}
	return write(filepath.Join(dir, hostFile), k.pair.Host)
}

// Dirs returns the directories that hold the files.
func (k *Kept) Dirs() []string { return k.dirs }

// Remove removes the files that are still this pair's, and their directories.
func (k *Kept) Remove() {
	for _, dir := range k.dirs {
		removeIf(filepath.Join(dir, agentFile), k.pair.Agent)
		removeIf(filepath.Join(dir, hostFile), k.pair.Host)
		_ = os.Remove(dir) // stays where another daemon put its own
	}
}

func removeIf(file, content string) {
	if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == content {
		_ = os.Remove(file)
	}
}

// File returns where the token for an address is, or would be. host asks for that of the host role. Of several names that an
// address may have (localhost is 127.0.0.1 and ::1) it takes the first under which there is one.
func File(base, addr string, host bool) (string, error) {
	name := agentFile
	if host {
		name = hostFile
	}
	dirs, err := candidates(base, addr)
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if _, err := os.Lstat(file); err == nil {
			return file, nil
		}
	}
	return filepath.Join(dirs[0], name), nil
}

// Read returns the token for an address. The error wraps fs.ErrNotExist where there is none: no daemon was started there by
// this user, or it runs with --no-auth.
func Read(base, addr string, host bool) (string, error) {
	file, err := File(base, addr, host)
	if err != nil {
		return "", err
	}
	if err := owned(filepath.Dir(file)); err != nil {
		return "", fmt.Errorf("read the token of %s: %w", addr, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token of %s: %w", addr, err)
	}
	return strings.TrimSpace(string(b)), nil
}

func write(file, content string) error {
	return durable.WriteFile(file, []byte(content), nil) // no newline: not every client strips it
}
