package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

func TestMain(m *testing.M) {
	deck.Enter()
	if len(os.Args) > 1 && slices.Contains([]string{"quickstart", "runs", "serve"}, os.Args[1]) { // what starts its own executable
		os.Exit(run(context.Background(), os.Args[1:], stdStreams()))
	}
	testscript.Main(m, map[string]func(){
		"tapedeck": func() {
			if err := makeWithOther(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(125)
			}
			os.Exit(run(context.Background(), os.Args[1:], stdStreams()))
		},
		"mcpserver":  mcpServer,
		"acpagent":   acpAgent,
		"acpclient":  acpClient,
		"mcpclient":  mcpClient,
		"mcpserving": mcpServing,
	})
}

// makeWithOther becomes the tapedeck that TAPEDECK_RECORD_WITH names, an older one say, where something is made that this one then
// reads.
func makeWithOther() error {
	other := os.Getenv("TAPEDECK_RECORD_WITH")
	if other == "" || len(os.Args) < 2 || !slices.Contains([]string{"record", "pack", "seal"}, os.Args[1]) {
		return nil
	}
	return syscall.Exec(other, append([]string{other}, os.Args[1:]...), os.Environ())
}

// TestScripts runs testdata/*.txtar; -update rewrites what they expect.
func TestScripts(t *testing.T) {
	diagnosis := deck.Diagnose()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TAPEDECK_RECORD_WITH", os.Getenv("TAPEDECK_RECORD_WITH"))
			e.Setenv("GOGC", "400")                           // hundreds of processes that end before they have anything to collect
			model := httptest.NewServer(scriptedllm.New(nil)) // for quickstart agent
			e.Defer(model.Close)
			e.Setenv("MODEL", model.URL)
			roots := filepath.Join(e.WorkDir, "home", "roots") // none: programs have only the recorder's to read
			e.Setenv("SSL_CERT_FILE", roots)
			e.Setenv("SSL_CERT_DIR", "/nonexistent")
			return errors.Join(os.Mkdir(e.WorkDir+"/home", 0o755), os.WriteFile(roots, []byte("# none\n"), 0o644))
		},
		Condition: func(cond string) (bool, error) {
			return cond == "jail" && diagnosis.Works, nil
		},
	})
}
