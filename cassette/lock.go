package cassette

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// A Holder is who records an account.
type Holder struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Host    string    `json:"host"`
	Command string    `json:"command"` // the program's name; its arguments may hold secrets
}

// A LockedError says that somebody else records this account.
type LockedError struct {
	Account string
	Path    string // of the lock's file
	Holder  Holder // zero where it could not be read
}

// Error names the holder.
func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("account %q is being recorded by another process (%s)", e.Account, e.Path)
	}
	return fmt.Sprintf("account %q is being recorded by %s, process %d on %s, since %s: wait for it or end it", e.Account,
		e.Holder.Command, e.Holder.PID, e.Holder.Host, e.Holder.Since.Format(time.RFC3339))
}

// A Lock is the right to record one account. Release it; the kernel does when the process dies, however it dies.
type Lock struct {
	f    *flock.Flock
	info string
}

// AcquireRecordLock takes the lock of an account under the root of cassettes, which is made where it is not there. It never waits:
// where another holds it the error is a *LockedError. The account may be any text; its file's name is made of its digest.
//
// The lock is the kernel's, on root/.locks/NAME.lock, which stays there unlocked. Who holds it stands in NAME.json beside it: on
// Windows a locked file cannot be read.
func AcquireRecordLock(root, account string) (*Lock, error) {
	dir := filepath.Join(root, ".locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, lockName(account))
	l := &Lock{f: flock.New(base+".lock", flock.SetPermissions(0o600)), info: base + ".json"}
	ok, err := l.f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock account %q: %w", account, err)
	}
	if !ok {
		return nil, &LockedError{Account: account, Path: base + ".lock", Holder: readHolder(l.info)}
	}
	if err := writeJSON(l.info, thisProcess(), false); err != nil {
		l.f.Unlock()
		return nil, err
	}
	return l, nil
}

// Release gives the lock back.
func (l *Lock) Release() error {
	os.Remove(l.info) // says nothing once the lock is free; who comes next replaces it
	return l.f.Close()
}

// lockName is what an account's lock is called: what of the name is harmless in a path, and a digest of all of it.
func lockName(account string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, account)
	sum := sha256.Sum256([]byte(account))
	return fmt.Sprintf("%.40s-%x", plain, sum[:8])
}

func thisProcess() *Holder {
	host, _ := os.Hostname() // "" says enough
	return &Holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second), Host: host, Command: filepath.Base(os.Args[0])}
}

// readHolder reads who holds a lock, zero where nobody wrote it yet.
func readHolder(path string) (h Holder) {
	b, err := readSmall(path)
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}
