package token

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"
)

// Dir returns the directory of the tokens of the daemon that listens at addr.
func Dir(base, addr string) (string, error) {
	dirs, err := candidates(base, addr)
	if err != nil {
		return "", err
	}
	return dirs[0], nil
}

// candidates returns the directories in which a daemon at addr may have left its tokens, the likeliest first.
func candidates(base, addr string) ([]string, error) {
	names, err := names(addr)
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = filepath.Join(Base(), "tapedeck")
	}
	for i, name := range names {
		names[i] = filepath.Join(base, "daemon-"+name)
	}
	return names, nil
}

// Base returns the XDG runtime directory, else the config directory.
func Base() string {
	return cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), xdg.ConfigHome)
}

// names returns what an address is called in a directory's name.
func names(addr string) ([]string, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return socketName(path)
	}
	hostport := addr
	if strings.Contains(addr, "://") {
		u, err := url.Parse(addr)
		if err != nil {
			return nil, fmt.Errorf("the address of a daemon: %w", err)
		}
		hostport = u.Host
		if u.Port() == "" {
			hostport = net.JoinHostPort(u.Hostname(), map[string]string{"wss": "443", "https": "443"}[u.Scheme])
		}
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("the address of a daemon: want host:port, ws://host:port or unix:PATH, got %q", addr)
	}
	return tcpNames(strings.ToLower(host), cmp.Or(port, "80")), nil
}

func socketName(path string) ([]string, error) {
	path = strings.TrimPrefix(path, "//")
	full, err := filepath.Abs(path)
	if err != nil || path == "" {
		return nil, fmt.Errorf("the address of a daemon: want unix:PATH, got %q", "unix:"+path)
	}
	sum := sha256.Sum256([]byte(full))
	return []string{"socket-" + hex.EncodeToString(sum[:8])}, nil
}

// tcpNames names host and port in letters that every file system takes. A daemon of this machine that listens on every address is
// one of the candidates for an address of this machine alone: its token must not go to whoever listens elsewhere.
func tcpNames(host, port string) []string {
	hosts := []string{host}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "localhost":
		hosts = []string{"127.0.0.1", "::1", "any"}
	case host == "" || err == nil && ip.IsUnspecified():
		hosts = []string{"any", "127.0.0.1"}
	case err == nil:
		ip = ip.Unmap().WithZone("")
		hosts[0] = ip.String()
		if here(ip) {
			hosts = append(hosts, "any")
		}
	}
	for i, h := range hosts {
		hosts[i] = plain(h) + "-" + plain(port)
	}
	return hosts
}

// here reports whether an address is one of this machine.
func here(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, s)
}

// private makes a directory that only its owner can read, with those above it, and makes sure that it is one.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := owned(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// owned refuses a directory into which somebody else may have put a token.
func owned(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: remove it", dir)
	}
	return checkOwner(dir, info)
}
