// Package program is what a recorded program starts with: its file, its environment, the ports that are served to it.
package program

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A NotFoundError says that the program to run is not there or cannot be executed.
type NotFoundError struct {
	Name string
	Err  error
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }

func (e *NotFoundError) Unwrap() error { return e.Err }

// Find finds the program as execvp would: a name with a slash is taken from dir, any other from the PATH of env,
// whose relative entries are taken from dir too.
func Find(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return executable(name, join(dir, name))
	}
	for _, p := range filepath.SplitList(recording.Getenv(env, "PATH")) {
		if path, err := executable(name, join(join(dir, p), name)); err == nil {
			return path, nil
		}
	}
	return "", &NotFoundError{Name: name, Err: fmt.Errorf("no such program in PATH: %w", fs.ErrNotExist)}
}

func executable(name, path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", &NotFoundError{Name: name, Err: err}
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return "", &NotFoundError{Name: name, Err: fmt.Errorf("not an executable file: %w", fs.ErrInvalid)}
	}
	return path, nil
}

// join is filepath.Join with path winning where it is absolute.
func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// digests are those of the programs that this process read: a program of 200 MB takes a tenth of a second, and a replay asks for
// it again.
var digests sync.Map // programFile to cas.Digest

// A programFile is a file as it stood: whoever writes to it changes the time of its inode.
type programFile struct {
	path        string
	size, ctime int64
	inode       uint64
}

// DigestOf returns the BLAKE3 of a program's file, or the zero digest where it cannot be read: a program may be executable and
// not readable.
func DigestOf(path string) cas.Digest {
	f, err := os.Open(path)
	if err != nil {
		return cas.Digest{}
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return cas.Digest{}
	}
	file := programFile{path: path, size: st.Size()}
	var known bool
	if file.ctime, file.inode, known = files.InodeOf(st); known {
		if d, ok := digests.Load(file); ok {
			return d.(cas.Digest)
		}
	}
	h := cas.NewHasher()
	if _, err := io.Copy(h, f); err != nil {
		return cas.Digest{}
	}
	if known {
		digests.Store(file, h.Sum())
	}
	return h.Sum()
}

// CABundle is where the program finds the certificates that it shall trust.
const CABundle = "/run/tapedeck/ca.pem"

// InJail reports whether this process runs in the jail of a recorder.
func InJail() bool {
	_, err := os.Stat(CABundle)
	return err == nil
}

// proxyVars send a program to a proxy that the jail does not hold. The recorder heeds them itself when it dials.
var proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"}

// alike are variables by which programs do on a replay what they did before.
var alike = []string{
	"GIT_DISCOVERY_ACROSS_FILESYSTEM=1", // git looks above a mount: the trees of a replay are mounts, which those of the recorded run were not
	"OPENSSL_ia32cap=" + withoutRdrand,
}

// withoutRdrand has BoringSSL, which Bun has, ask the kernel for random bytes and not the processor. OpenSSL takes a word that is not there for
// none of what it stands for, and would hash and sign at a third of the speed, without SHA, BMI and ADX: so the others say that they take nothing away.
const withoutRdrand = "~0x4000000000000000:~0x0:~0x0:~0x0:~0x0"

// ToRecord returns env as a recording keeps it, for its replays too: what makes programs the same on both is in it, where the caller has not set it.
func ToRecord(env []string) []string {
	env = slices.Clip(env)
	for _, kv := range alike {
		if name, _, _ := strings.Cut(kv, "="); !overrides(env, name) {
			env = append(env, kv)
		}
	}
	return env
}

// Env returns env as the program gets it: without its proxies, with the recorder's certificates.
func Env(env []string, bundle string) []string {
	trust := network.Env(bundle)
	out := make([]string, 0, len(env)+len(trust))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(proxyVars, strings.ToUpper(name)) || overrides(trust, name) {
			continue
		}
		out = append(out, kv)
	}
	return append(out, trust...)
}

func overrides(vars []string, name string) bool {
	return slices.ContainsFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// ollamaPort is where a server of local models listens, on whatever host: served without being asked for.
const ollamaPort = 11434

// Ports lists the ports beside 80 and 443 that are served: Ollama's, and those that upstreams, keyed by
// NAME[:PORT], ask for; in ascending order.
func Ports(upstreams map[string]string) []uint16 {
	out := []uint16{ollamaPort}
	for name := range upstreams {
		_, port, _ := net.SplitHostPort(name) // none in it: 80 and 443
		if p := portIn(port); p != 0 {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NamesLoopback reports whether an upstream, keyed by NAME[:PORT], answers for an address of the loopback: then requests to
// it must come to the recorder.
func NamesLoopback(upstreams map[string]string) bool {
	for name := range upstreams {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && addr.IsLoopback() {
			return true
		}
	}
	return false
}

// maxPorts bounds the ports that a jail listens on, beside 80 and 443.
const maxPorts = 200

// MergePorts returns the ports of both lists in ascending order, as far as a jail can serve them.
func MergePorts(a, b []uint16) []uint16 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxPorts)]
}

// PortIn is the port that a URL names, beside 80 and 443; 0 for none.
func PortIn(u *url.URL) uint16 { return portIn(u.Port()) }

func portIn(port string) uint16 {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 80 || n == 443 {
		return 0
	}
	return uint16(n)
}
