package terminal

import "errors"

// errStopped is what a keyReader answers once it was stopped.
var errStopped = errors.New("nobody reads keys any more")
