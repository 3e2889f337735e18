package main

import (
	"os"
	"runtime/debug"
)

// recorderMemory is what the recorder's heap is kept to, in bytes, while a program is recorded beside it: its machine is the
// program's. What is live may exceed it.
const recorderMemory = 48 << 20

// boundMemory makes the garbage collector work earlier, unless GOMEMLIMIT or GOGC say otherwise.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(recorderMemory)
	}
}
