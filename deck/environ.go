package deck

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// caBundle is where the program finds the certificates that it shall trust.
const caBundle = "/run/tapedeck/ca.pem"

// proxyVars send a program to a proxy that the jail does not hold. The recorder heeds them itself when it dials.
var proxyVars = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"}

// stageVars belong to the recorder's own processes.
var stageVars = []string{"GOCOVERDIR"}

// jailEnv returns env as the program gets it inside: without proxies, with the recorder's certificates.
func jailEnv(env []string) []string {
	trust := network.Env(caBundle)
	out := make([]string, 0, len(env)+len(trust))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(proxyVars, strings.ToUpper(name)) || slices.Contains(stageVars, name) || overrides(trust, name) {
			continue
		}
		out = append(out, kv)
	}
	return append(out, trust...)
}

func overrides(vars []string, name string) bool {
	return slices.ContainsFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// manifestEnv returns env as recording.json holds it: secrets as placeholders with their shapes.
func manifestEnv(s *scrub.Scrubber, env []string) []EnvVar {
	vars := s.Env(env)
	out := make([]EnvVar, len(vars))
	for i, v := range vars {
		out[i] = EnvVar{Name: v.Name, Value: v.Value, Secret: v.Secret, Shape: v.Shape}
	}
	return out
}

// A secretVar is a variable of a replay that was a secret while recording.
type secretVar struct {
	name, value string
	placeholder string // that stands for it on the tape
}

// replayEnv returns the recorded environment in its order, and lists its secrets: their values are taken from env or,
// where env lacks them, made up in the recorded shape.
func replayEnv(recorded []EnvVar, env []string) (out []string, secrets []secretVar) {
	for _, v := range recorded {
		value := v.Value
		if v.Secret {
			if value = getenv(env, v.Name); value == "" {
				value = scrub.Dummy(scrub.Var{Name: v.Name, Value: v.Value, Secret: true, Shape: v.Shape})
			}
			secrets = append(secrets, secretVar{v.Name, value, v.Value})
		}
		out = append(out, v.Name+"="+value)
	}
	return out, secrets
}

// learnSecrets tells s that the secrets of a replay read as those of the recording: an answer on the tape holds the
// recorded placeholder, and the program beside it has its own value.
func learnSecrets(s *scrub.Scrubber, secrets []secretVar) {
	for _, v := range secrets {
		if !s.AddAlias(v.placeholder, v.value) {
			s.AddSecret(v.name, v.value)
		}
	}
}

// learnArgs tells s the secrets among the arguments: the value of a flag whose name says so, in both spellings
// (--api-key=V, --api-key V).
func learnArgs(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !inline && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		if value != "" && scrub.NameSaysSecret(name) {
			s.AddSecret(strings.ReplaceAll(strings.ToLower(name), "-", "_"), value)
		}
	}
}

// scrubAll returns args with their secrets as placeholders.
func scrubAll(s *scrub.Scrubber, args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = s.String(a)
	}
	return out
}
