//go:build escape

package escape

// A scene is what stands outside, for a program inside to reach: made by the outside, read by every try.
type scene struct {
	Token string // stands in every name and every secret of the scene
	Only  string // rows whose name holds it; all when empty
	Long  bool   // what is bounded by a count is tried to its bound

	Home, Work, Temp string
	Elsewhere        string // a directory of the program's user that is none of the above
	Config, Runtime  string // our keys; the user's runtime directory
	Recording        string // while it is made; empty on a replay, which makes none

	TCP      map[string]string // listeners, by what they stand for
	UDP      map[string]string
	Sockets  map[string]string // Unix sockets, by what they stand for
	CA       []byte            // of the TLS listener, PEM
	Address  string            // of this machine, not the loopback; empty for none
	Terminal string            // the outer terminal's path; empty for none

	Victim int // PID, outside
	Queue  string
	Key    int // of System V objects

	Setuid, Setcap string // copies of this program with privileges; empty where they could not be made
	Device         string // a node of the null device; likewise
	OtherProc      string // the host's /proc at another place; likewise
	Cgroup         string // cgroup directory that the program's user owns; likewise
	Small          string // writable, and as root a file system of few MiB
	Below          string // a directory that is mounted below Small too; empty where it could not be
	SlashTmp       string // what stands at /tmp for a recorder that root starts: the machine's own is not ours to fill layers from
}
