// Command page builds the page of package page: TypeScript and styles below ui/src to ui/dist/page.js and page.css, and the types of
// what the page reads from the Go ones that write it.
//
//	go run . -repo ../..
//
// It is a module of its own: the program needs no bundler.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// most is how many bytes the bundle may have: each exported page carries it.
const most = 150_000

// private are names of preact's internals, and what signals calls them.
var private = map[string]any{
	"_catchError": "__e", "_component": "__c", "_depth": "__b", "_diff": "__b", "_dom": "__e", "_hook": "__h", "_parent": "__",
	"_render": "__r", "_vnode": "__v",
}

func main() {
	repo := flag.String("repo", "../..", "the top of the repository")
	flag.Parse()
	if err := run(*repo); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(repo string) error {
	types, err := modelTypes(repo)
	if err != nil {
		return err
	}
	ui := filepath.Join(repo, "ui")
	if err := os.WriteFile(filepath.Join(ui, "src", "model.ts"), types, 0o644); err != nil {
		return err
	}
	return bundle(ui)
}

func bundle(ui string) error {
	dir, err := filepath.Abs(ui)
	if err != nil {
		return err
	}
	vendor := func(elem ...string) string { return filepath.Join(append([]string{dir, "vendor"}, elem...)...) }
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir,
		EntryPoints:   []string{"src/page.tsx"},
		Outdir:        "dist",
		Bundle:        true,
		Write:         true,
		Charset:       api.CharsetUTF8,
		Format:        api.FormatIIFE,
		LegalComments: api.LegalCommentsNone,
		LogLevel:      api.LogLevelWarning,
		Target:        api.ES2022,
		JSXFactory:    "h",
		JSXFragment:   "Fragment",
		MangleProps:   "^_[a-z]",
		MangleCache:   private,
		Alias: map[string]string{
			"preact":               vendor("preact", "index.js"),
			"preact/hooks":         vendor("preact", "hooks", "index.js"),
			"@preact/signals":      vendor("signals", "index.ts"),
			"@preact/signals-core": vendor("signals-core", "index.ts"),
		},
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
	})
	if len(result.Errors) > 0 {
		return errors.New("the page does not build")
	}
	size := 0
	for _, f := range result.OutputFiles {
		size += len(f.Contents)
	}
	if size > most {
		return fmt.Errorf("the bundle has %d bytes, expected at most %d", size, most)
	}
	return nil
}
