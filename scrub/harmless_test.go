package scrub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// harmlessVar names directories, separated as PATH is, in which TestHarmlessFiles looks for more files.
const harmlessVar = "SCRUB_TEST_HARMLESS"

// TestHarmlessFiles: nothing is found in the sources of Go's standard library, of Python and of Node, where they are here,
// but for the credentials that some of them hold as examples.
func TestHarmlessFiles(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	lines := 0
	for _, root := range harmlessRoots() {
		for path, b := range sources(t, root) {
			lines += bytes.Count(b, []byte("\n"))
			for _, hit := range hits(s, b) {
				if !onPurpose(hit) {
					t.Errorf("%s: %s", path, hit)
				}
			}
		}
	}
	if lines < 4000 {
		t.Errorf("only %d lines were looked at", lines)
	}
	t.Logf("%d lines", lines)
}

func harmlessRoots() []string {
	src := filepath.Join(build.Default.GOROOT, "src")
	roots := []string{filepath.Join(src, "net"), filepath.Join(src, "encoding"), filepath.Join(src, "os"), filepath.Join(src, "strings"),
		filepath.Join(src, "go"), filepath.Join(src, "text")}
	for _, pattern := range []string{"/usr/lib/python3*/email", "/usr/lib/python3*/json", "/usr/share/nodejs/npm/lib", "/usr/lib/node_modules/npm/lib"} {
		found, _ := filepath.Glob(pattern)
		roots = append(roots, found...)
	}
	return append(roots, filepath.SplitList(os.Getenv(harmlessVar))...)
}

// sources yields the files below root.
func sources(t *testing.T, root string) func(func(string, []byte) bool) {
	return func(yield func(string, []byte) bool) {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err == nil && !yield(path, b) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// hits lists what is found in b: the rule and the text.
func hits(s *scrub.Scrubber, b []byte) (out []string) {
	w := s.Writer(&bytes.Buffer{})
	before := s.Counts()
	w.OnReplace(func(start, end int64, _ int) {
		out = append(out, string(b[start:end]))
	})
	w.Write(b)
	w.Close()
	if len(out) > 0 {
		var rules []string
		for rule, n := range s.Counts() {
			if n > before[rule] {
				rules = append(rules, rule)
			}
		}
		slices.Sort(rules)
		for i := range out {
			out[i] = fmt.Sprintf("%v: %.100q", rules, out[i])
		}
	}
	return out
}

// onPurpose tells a credential that a source holds as its example: the password of a URL, or Basic credentials.
func onPurpose(hit string) bool {
	rules, _, _ := strings.Cut(hit, ": ")
	return strings.Trim(rules, "[]") == "basic" || strings.Trim(rules, "[]") == "url_password" || rules == "[basic url_password]"
}

// projects are what projects are called: some plain ones, and every service that gitleaks knows.
func projects() []string {
	names := []string{"tapedeck", "left-pad", "requests", "serde"}
	for _, l := range scrub.Leaks() {
		if l.Assigned {
			names = append(names, l.Names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lockLines are lines that name a project and hold a digest.
var lockLines = []func(r *rand.Rand, name string) string{
	func(r *rand.Rand, name string) string {
		return "github.com/" + name + "/" + name + "-go v1.2.3 h1:" + b64(r, 32)
	},
	func(r *rand.Rand, name string) string { return name + " v0.0.0-20240101 h1:" + b64(r, 32) },
	func(r *rand.Rand, name string) string {
		return "github.com/" + name + " v1.0.0/go.mod h1:" + b64(r, 32)
	},
	func(r *rand.Rand, name string) string {
		return `    "node_modules/` + name + `": {"version": "1.2.3", "resolved": "https://registry.npmjs.org/` + name + `/-/` + name +
			`-1.2.3.tgz", "integrity": "sha512-` + b64(r, 64) + `", "dev": true},`
	},
	func(r *rand.Rand, name string) string {
		return name + "@^1.2.3:\n  version \"1.2.3\"\n  resolved \"https://registry.yarnpkg.com/" + name + "/-/" + name + "-1.2.3.tgz#" + hexOf(r, 20) +
			"\"\n  integrity sha512-" + b64(r, 64)
	},
	func(r *rand.Rand, name string) string {
		return "  " + name + "@1.2.3:\n    resolution: {integrity: sha512-" + b64(r, 64) + "}"
	},
	func(r *rand.Rand, name string) string { return `  "` + name + `": "sha1-` + b64(r, 20) + `",` },
	func(r *rand.Rand, name string) string {
		return "[[package]]\nname = \"" + name + "\"\nversion = \"1.0.0\"\nchecksum = \"" + hexOf(r, 32) + "\""
	},
	func(r *rand.Rand, name string) string { return name + "==1.2.3 \\\n    --hash=sha256:" + hexOf(r, 32) },
	func(r *rand.Rand, name string) string {
		return `    {file = "` + name + `-1.2.3.tar.gz", hash = "sha256:` + hexOf(r, 32) + `"},`
	},
	func(r *rand.Rand, name string) string { return "image: registry/" + name + "@sha256:" + hexOf(r, 32) },
	func(r *rand.Rand, name string) string { return hexOf(r, 32) + "  " + name + "-linux-amd64.tar.gz" },
	func(r *rand.Rand, name string) string { return "SHA256 (" + name + ".tar.gz) = " + hexOf(r, 32) },
	func(r *rand.Rand, name string) string {
		return "commit " + hexOf(r, 20) + "\n\n    " + name + ": fix the client, see #123"
	},
	func(r *rand.Rand, name string) string { return hexOf(r, 20)[:9] + " " + name + ": say what is missing" },
	func(r *rand.Rand, name string) string {
		return name + "_commit=" + hexOf(r, 20) + " " + name + ".sha256: " + hexOf(r, 32)
	},
	func(r *rand.Rand, name string) string {
		return "index " + hexOf(r, 20)[:8] + ".." + hexOf(r, 20)[:8] + " 100644\n--- a/" + name + ".go"
	},
	func(r *rand.Rand, name string) string {
		return `{"name":"` + name + `","dist":{"shasum":"` + hexOf(r, 20) + `"}}`
	},
}

// idLines name a service and an id of something of it, as JSON, CSV and YAML.
var idLines = []func(name, id string) string{
	func(name, id string) string {
		return `{"` + name + `_account_id":"` + id + `","` + name + `": "` + id + `"}`
	},
	func(name, id string) string {
		return `{"` + name + `":{"id":"` + id + `"},"` + name + `UserId":"` + id + `"}`
	},
	func(name, id string) string {
		return name + "," + id + "," + name + "_author," + id + "\n" + name + "\t" + id
	},
	func(name, id string) string {
		return name + ": " + id + "\n" + name + "_key_id: " + id + "\n" + name + "_site: '" + id + "'"
	},
	func(name, id string) string {
		return name + " = " + id + "\n" + strings.ToUpper(name) + "_PROJECT=" + id
	},
}

// ids are what services give to what they keep: of every length for which there is a shape.
func ids(r *rand.Rand) []string {
	list := []string{uuid(r), strings.ToUpper(uuid(r)), "00" + hexOf(r, 20), "su" + hexOf(r, 6)}
	for n := 7; n <= 32; n++ {
		list = append(list, hexOf(r, n), hexOf(r, n)[1:])
	}
	return list
}

// textLines are lines of code, prose and logs that name a project.
var textLines = []func(r *rand.Rand, name string) string{
	func(_ *rand.Rand, name string) string {
		return name + " = newClientWithDefaultOptions(context, configuration)"
	},
	func(_ *rand.Rand, name string) string {
		return `import { createAuthenticationProvider } from "@` + name + `/authentication-provider";`
	},
	func(_ *rand.Rand, name string) string {
		return "The " + name + " integration: authentication, authorization, notifications."
	},
	func(_ *rand.Rand, name string) string {
		return name + ".token = process.env." + strings.ToUpper(name) + "_TOKEN;"
	},
	func(_ *rand.Rand, name string) string {
		return strings.ToUpper(name) + "_API_KEY=${" + strings.ToUpper(name) + "_API_KEY}"
	},
	func(_ *rand.Rand, name string) string {
		return strings.ToUpper(name) + "_API_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	},
	func(_ *rand.Rand, name string) string {
		return "https://" + name + ".com/docs/api-keys?utm_source=readme#getting-started"
	},
	func(r *rand.Rand, name string) string {
		return "2026-11-21T07:08:09.123Z INFO " + name + ": request " + uuid(r) + " took 12.5ms"
	},
	func(r *rand.Rand, name string) string {
		return `{"id":"` + uuid(r) + `","service":"` + name + `","count":` + fmt.Sprint(r.Uint32()) + `}`
	},
	func(_ *rand.Rand, name string) string {
		return `!function(e,t){e.` + strings.ReplaceAll(name, "-", "_") + `=t(),e.isInternetExplorerOrEdgeBrowser=!0}(this,function(){"use strict"});`
	},
	func(r *rand.Rand, _ string) string { return "data:image/png;base64,iVBORw0KGgo" + b64(r, 900) },
	func(r *rand.Rand, _ string) string {
		return "//# sourceMappingURL=data:application/json;base64," + b64(r, 300)
	},
	func(r *rand.Rand, _ string) string { return b64(r, 57) },
	func(r *rand.Rand, _ string) string {
		return "sha256:" + hexOf(r, 32) + " " + uuid(r) + " " + hexOf(r, 16)
	},
}

func b64(r *rand.Rand, n int) string { return base64.StdEncoding.EncodeToString(bytesOf(r, n)) }

func hexOf(r *rand.Rand, n int) string { return hex.EncodeToString(bytesOf(r, n)) }

func bytesOf(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func uuid(r *rand.Rand) string {
	h := hexOf(r, 16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// TestHarmlessLines: lock files, checksums, logs, Git's output, minified code and images of projects that are named after
// the services that gitleaks knows. All of it plain and as a JSON string.
func TestHarmlessLines(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	rng := rand.New(rand.NewPCG(5, 6))
	lines := 0
	for range 3 {
		for _, name := range projects() {
			for _, line := range append(slices.Clone(lockLines), textLines...) {
				text := line(rng, name) + "\n"
				lines += strings.Count(text, "\n")
				quoted, _ := json.Marshal(text)
				for _, b := range [][]byte{[]byte(text), quoted} {
					for _, hit := range hits(s, b) {
						t.Errorf("%s\nis found in %s", hit, b)
					}
				}
			}
		}
	}
	for _, name := range projects() {
		if scrub.SaysSecret(name) || strings.Contains(name, "sonar") {
			continue // what stands behind it is a secret by the name
		}
		for _, id := range ids(rng) {
			for _, line := range idLines {
				text := line(name, id) + "\n"
				lines += strings.Count(text, "\n")
				quoted, _ := json.Marshal(text)
				for _, b := range [][]byte{[]byte(text), quoted} {
					for _, hit := range hits(s, b) {
						t.Errorf("%s\nis found in %s", hit, b)
					}
				}
			}
		}
	}
	t.Logf("%d lines", lines)
}
