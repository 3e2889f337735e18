package deck

import "github.com/tapedeck-dev/tapedeck/internal/jail"

// ErrUnavailable is wrapped by every error that says that the jail cannot be made here, with the reason.
var ErrUnavailable = jail.ErrUnavailable

// Enter must be the first call of main, and of TestMain where a test records: in a process that the jail started it does
// the jail's work and never returns, in any other it returns at once.
func Enter() { jail.Enter() }
