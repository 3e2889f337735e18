//go:build !linux

package deck

import (
	"io/fs"
	"os"
	"runtime"
)

func thisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.Name, _ = os.Hostname()
	return h
}

func ownedByUs(fs.FileInfo) bool { return true }
