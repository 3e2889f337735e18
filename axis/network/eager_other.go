//go:build !unix

package network

// canReadNow says that a socket can be asked what has come.
const canReadNow = false

func (e *eager) readFD(uintptr) bool { return true }
