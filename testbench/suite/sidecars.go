package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// The suffixes of what lies beside a file of tests, behind its name without .star.
const (
	llmSuffix     = ".llm.jsonl"
	processSuffix = ".process-tape.json"
	filesSuffix   = "_test.files"
	mcpSuffix     = ".mcp.tape"
	netSuffix     = ".net.tape"
	tapeSuffix    = ".tape"
)

// base is a file of tests without .star.
func base(file string) string { return strings.TrimSuffix(file, ".star") }

// golden is the path of the golden tape of a test.
func golden(file, function string) string { return base(file) + "." + function + tapeSuffix }

// beside returns c with what lies beside file. c is left as it is.
func beside(file string, c *testbench.Config) (*testbench.Config, error) {
	own := *c
	for suffix, set := range map[string]func(path string){
		llmSuffix:     func(path string) { own.LLM = testbench.LLM{Fixture: path} },
		processSuffix: func(path string) { own.Processes = testbench.Processes{Tape: path} },
		".files":      func(path string) { own.Files.Dir = path },
		mcpSuffix:     func(path string) { own.MCP = path },
		netSuffix:     func(path string) { own.Net = testbench.Net{Tape: path} },
	} {
		path := base(file) + suffix
		there, err := exists(path)
		if err != nil {
			return nil, err
		}
		if there {
			set(path)
		}
	}
	return &own, nil
}

// exists says whether a file or a directory stands at path. Opening anything else may wait for ever.
func exists(path string) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return false, fmt.Errorf("%s is %s: want a file or a directory", path, regular.Kind(st.Mode()))
	}
	return err == nil, err
}
