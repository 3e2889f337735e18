//go:build escape

package escape

import (
	"fmt"
	"runtime/debug"
)

func int80getpid() int32

const has32Bit = true

// noSuchCalls is what int80 prints where the kernel was started without calls of 32-bit programs: the instruction is a fault there.
const noSuchCalls = "no calls of 32-bit programs"

// int80 makes a call of 32-bit programs and prints what came.
func int80() error {
	debug.SetPanicOnFault(true)
	defer func() {
		if recover() != nil {
			fmt.Println(noSuchCalls)
		}
	}()
	_, err := fmt.Println("pid", int80getpid())
	return err
}
