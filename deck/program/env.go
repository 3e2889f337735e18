package program

import (
	"os"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/network"
)

// CABundle is where the program finds the certificates that it shall trust.
const CABundle = "/run/tapedeck/ca.pem"

// InJail reports whether this process runs in the jail of a recorder.
func InJail() bool {
	_, err := os.Stat(CABundle)
	return err == nil
}

// proxyVars send a program to a proxy that the jail does not hold. The recorder heeds them itself when it dials.
var proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"}

// acrossMounts lets git look for its directory above a mount. The trees of a replay are mounts, which those of the recorded run were
// not: git would stop there, and say so to a program that asks it where no repository is.
const acrossMounts = "GIT_DISCOVERY_ACROSS_FILESYSTEM"

// ToRecord returns env as a recording keeps it, for its replays too: what makes programs the same on both is in it.
func ToRecord(env []string) []string {
	if overrides(env, acrossMounts) {
		return env
	}
	return append(slices.Clip(env), acrossMounts+"=1")
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
