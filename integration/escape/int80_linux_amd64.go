//go:build escape

package escape

import "fmt"

func int80getpid() int32

const has32Bit = true

// int80 makes a call of 32-bit programs and prints what came.
func int80() error {
	_, err := fmt.Println("pid", int80getpid())
	return err
}
