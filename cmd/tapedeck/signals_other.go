//go:build !unix

package main

import "os"

var passedSignals = []os.Signal{os.Interrupt}

var brokenPipe []os.Signal
