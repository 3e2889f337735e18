//go:build race

package launch

import (
	"cmp"
	"os"
)

// self is the executable of the init. The race detector costs each start of a program 75 ms of CPU, and it has
// little to race: tests of other packages may name a tapedeck that was built without it.
var self = cmp.Or(os.Getenv("TAPEDECK_STAGES"), "/proc/self/exe")
