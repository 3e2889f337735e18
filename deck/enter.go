package deck

import "github.com/tapedeck-dev/tapedeck/internal/jail"

// ErrUnavailable is wrapped by every error that says that the jail cannot be made here, with the reason.
var ErrUnavailable = jail.ErrUnavailable

// Enter must be the first call of main, and of TestMain where a test records: in a process that the jail started it does
// the jail's work and never returns, in any other it returns at once.
func Enter() { jail.Enter() }

// Available reports whether the jail can be made here, tried once a process. The error wraps ErrUnavailable.
func Available() error { return jail.Available() }

// AvailableOutside reports whether programs can be run outside the jail on this system.
func AvailableOutside() error { return outsideAvailable() }
