package jail

import "errors"

// ErrUnavailable is what every *UnavailableError is: this system cannot make the jail.
var ErrUnavailable = errors.New("jail unavailable")

// ErrNotEntered is returned by Start in a process whose main did not call Enter first: starting its executable again
// would run main again.
var ErrNotEntered = errors.New("jail: main did not call Enter first")

// An UnavailableError says why this system cannot make the jail, and what would change that.
type UnavailableError struct {
	Reason string
	Remedy string // empty where there is none
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.Remedy == "" {
		return "jail unavailable: " + e.Reason
	}
	return "jail unavailable: " + e.Reason + " (" + e.Remedy + ")"
}

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }
