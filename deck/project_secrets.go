package deck

import (
	"os"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// ProjectSecrets returns what hides secrets in what comes from elsewhere, such as another tool's transcript, as Record hides them
// in what it writes: with the project's key, so that a secret has one placeholder wherever it was found; values of the
// environment env (NAME=VALUE) by their names, and the shapes of secrets. The key is made on first use.
func ProjectSecrets(env []string) (*scrub.Scrubber, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	key, err := loadKey("")
	if err != nil {
		return nil, err
	}
	return scrub.New(key, &scrub.Options{Env: env, Harmless: pathsFrom(cwd)}), nil
}
