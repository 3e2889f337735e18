//go:build !linux

package spawns

import (
	"errors"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
)

var errNone = errors.New("nothing is spawned in a jail on this system")

type talk struct{}

// Stdio fails.
func (*Spawn) Stdio(int) (*os.File, error) { return nil, errNone }

// Streams fails.
func (*Spawn) Streams() (*Streams, error) { return nil, errNone }

// Ended returns a channel on which nothing comes.
func (*Spawn) Ended() <-chan process.Ended { return nil }

// Environ fails.
func (*Spawn) Environ() ([]string, error) { return nil, errNone }

// Signal fails.
func (*Spawn) Signal(syscall.Signal) error { return errNone }
