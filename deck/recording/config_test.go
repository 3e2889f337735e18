package recording

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
)

const projectPage = "../../docs/reference/project.md"

// TestProjectPage reads the file that the page shows, in which every key stands, and finds every key in its tables.
func TestProjectPage(t *testing.T) {
	page, err := os.ReadFile(projectPage)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page shows no file")
	}
	c := readText(t, string(example[1]))
	if c.Upstreams["api.openai.com"] == "" || len(c.Secrets) != 2 || *c.Prices["my-model"].Cached != 0.05 || c.Masks == nil || c.Side == nil || c.Test == nil {
		t.Errorf("read %+v", c)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Price]()} {
		for i := range typ.NumField() {
			key := typ.Field(i).Tag.Get("yaml")
			if !bytes.Contains(example[1], []byte(key+":")) || !regexp.MustCompile("(?m)^\\|.*`"+key+"`.*\\|").Match(page) {
				t.Errorf("the key %s does not stand in the example and in a table", key)
			}
		}
	}
}

func readText(t *testing.T, text string) Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
