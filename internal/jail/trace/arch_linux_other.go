//go:build linux && !amd64 && !arm64

package trace

import (
	"debug/elf"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// No filter is written for this processor: Start says so.
const stubMachine = elf.EM_NONE

var stubCode []byte

type Registers struct{}

func (*Registers) get(int) error                                 { return unix.ENOSYS }
func (*Registers) set(int) error                                 { return unix.ENOSYS }
func (*Registers) Call(_ *notify.Call, nr, a, b, c, d, e uint64) {}
func (*Registers) Return(*notify.Call, uint64)                   {}
func (*Registers) restarts(*notify.Call) bool                    { return false }
func (*Registers) Stack() uint64                                 { return 0 }
