package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
		"tapedeck":   func() { os.Exit(run(context.Background(), os.Args[1:], stdStreams())) },
		"mcpserver":  mcpServer,
		"mcpclient":  mcpClient,
		"mcpserving": mcpServing,
	})
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
			e.Setenv("GOGC", "400")                           // hundreds of processes that end before they have anything to collect
			model := httptest.NewServer(scriptedllm.New(nil)) // for quickstart agent
			e.Defer(model.Close)
			e.Setenv("MODEL", model.URL)
			roots := filepath.Join(e.WorkDir, "home", "roots") // none: programs have only the recorder's to read
			e.Setenv("SSL_CERT_FILE", roots)
			return errors.Join(os.Mkdir(e.WorkDir+"/home", 0o755), os.WriteFile(roots, []byte("# none\n"), 0o644))
		},
		Condition: func(cond string) (bool, error) {
			return cond == "jail" && diagnosis.Works, nil
		},
	})
}
