package main

import (
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// listSummary is content of a listing.
func listSummary(k *tape.DirList) string {
	var names []string
	if k.Names == nil || !k.Names.Inline || json.Unmarshal([]byte(k.Names.Text), &names) != nil {
		return "listed " + k.Path
	}
	return fmt.Sprintf("listed %s: %s", k.Path, plural(len(names), "name", "names"))
}

// envSummary is content of a variable. A long value, and one that is no text, shows in --payloads.
func envSummary(k *tape.EnvRead) string {
	switch {
	case k.Value == nil:
		return k.VarName
	case k.Value.Inline && k.Value.Len <= maxSaid:
		return k.VarName + "=" + k.Value.Text
	}
	return fmt.Sprintf("%s, %s", k.VarName, size(k.Value.Len))
}

// statSummary is content of a look at a path.
func statSummary(k *tape.FileStat) string {
	switch k.Type {
	case "file":
		return fmt.Sprintf("looked at %s: a file, %s", k.Path, size(k.LenBytes))
	case "none":
		return fmt.Sprintf("looked at %s: nothing is there", k.Path)
	}
	return fmt.Sprintf("looked at %s: %s", k.Path, k.Type)
}
