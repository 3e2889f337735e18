package jail

import (
	"fmt"
	"io"
	"net"
	"os"
)

// helpers run inside a jail, as its program.
var helpers = map[string]func(args []string) int{
	"dial": helperDial,
}

// helperDial dials each network:address and prints what it read, or that it could not.
func helperDial(args []string) int {
	for i := 0; i+1 < len(args); i += 2 {
		c, err := net.Dial(args[i], args[i+1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			fmt.Println(args[i+1], "failed")
			continue
		}
		data, _ := io.ReadAll(c)
		fmt.Println(args[i+1], "reached", string(data))
		c.Close()
	}
	return 0
}
