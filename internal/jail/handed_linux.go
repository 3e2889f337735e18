package jail

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
)

// handed finds the arguments of a new program that are numbers of descriptors which it was left, but for the standard ones.
func (in *inputs) handed(pid int, argv []string) (list []int) {
	for i, a := range argv {
		n, err := strconv.ParseUint(a, 10, 16)
		if i == 0 || err != nil || n <= 2 {
			continue
		}
		if to, err := inspect.ReadLink(in.spawns.view.Proc, strconv.Itoa(pid)+"/fd/"+a); err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:")) {
			list = append(list, i)
		}
	}
	return list
}
