package secrets

import (
	"os"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// OfProject returns what hides secrets in what comes from elsewhere, such as another tool's transcript, as Record hides them
// in what it writes: with the project's key, so that a secret has one placeholder wherever it was found; values of the
// environment env (NAME=VALUE) by their names, and the shapes of secrets. The key is made on first use.
func OfProject(env []string) (*scrub.Scrubber, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	key, err := recording.LoadKey("")
	if err != nil {
		return nil, err
	}
	return scrub.New(key, &scrub.Options{Env: env, Harmless: PathsFrom(cwd)}), nil
}

// PathsFrom tells what is a path, seen from the directory cwd.
func PathsFrom(cwd string) func(value string) bool {
	return names.PathsFrom(cwd, func(path string) bool { _, err := os.Lstat(path); return err == nil })
}

// OfTerminal returns what knows the secrets of a program that is recorded on a terminal alone: those in its arguments and
// its environment by their names, as for Record, and the shapes of secrets.
func OfTerminal(argv, env []string) (*scrub.Scrubber, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	s := scrub.New(scrub.Key{1}, &scrub.Options{Env: env, Harmless: PathsFrom(cwd)}) // masks have no key
	if len(argv) > 1 {
		LearnArgs(s, argv[1:])
	}
	return s, nil
}
