package early

import (
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
)

// One that turns out not to be needed, for the command line is wrong or it runs outside the jail, ends with this process or before.
func init() {
	if len(os.Args) > 2 && (os.Args[1] == "record" || os.Args[1] == "replay") {
		launch.Ahead()
	}
}
