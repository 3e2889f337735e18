//go:build escape

#include "textflag.h"

// func int80getpid() int32
// The getpid of 32-bit programs (20): the kernel's other door, with numbers of its own.
TEXT ·int80getpid(SB), NOSPLIT, $0-4
	MOVL $20, AX
	INT  $0x80
	MOVL AX, ret+0(FP)
	RET
