// Package golden says whether a test is to write its golden files anew: by the flag -update of its binary, whoever made that flag, or by
// a variable of the environment, which reaches the tests of several packages at once.
package golden

import (
	"flag"
	"os"
)

// UpdateEnv is the variable of the environment that, set to 1, has golden files written.
const UpdateEnv = "TAPEDECK_UPDATE"

const updateName = "update"

// Flag gives a test binary the flag -update, unless it has one, and returns it.
func Flag() *flag.Flag {
	if flag.Lookup(updateName) == nil {
		flag.Bool(updateName, false, "write golden files anew")
	}
	return flag.Lookup(updateName)
}

// How says how this test binary is told to write its golden files: by the flag only where it has one.
func How() string {
	if flag.Lookup(updateName) == nil {
		return UpdateEnv + "=1"
	}
	return "-" + updateName + " or " + UpdateEnv + "=1"
}

// Updating reports whether golden files are to be written.
func Updating() bool {
	if os.Getenv(UpdateEnv) == "1" {
		return true
	}
	f := flag.Lookup(updateName)
	return f != nil && f.Value.String() == "true"
}
