package rooms_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mention = regexp.MustCompile(`(?:^|[^\w/.-])(docs/[\w/-]+\.md)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\w\- ]`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks: each link of a page leads to a file that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "corpus/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			for _, m := range link.FindAllStringSubmatch(proseOf(t, page), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				if why := leadsNowhere(t, page, m[1]); why != "" {
					t.Errorf("%s: %s: %s", page, m[1], why)
				}
			}
		}
	}
}

// leadsNowhere says why a link of a page does, "" where it leads somewhere.
func leadsNowhere(t *testing.T, page, target string) string {
	name, anchor, _ := strings.Cut(target, "#")
	if name == "" {
		name = page
	} else {
		name = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
	}
	if _, err := os.Stat(name); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	for _, m := range heading.FindAllStringSubmatch(proseOf(t, name), -1) {
		if slug(m[1]) == anchor {
			return ""
		}
	}
	return "no such heading"
}

// slug is the anchor that a heading gets.
func slug(text string) string {
	text = linked.ReplaceAllString(text, "$1")
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
}

// proseOf is a page without its blocks of code.
func proseOf(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(b), "")
}

// TestMentions: a page that code, a message or a help text names is there.
func TestMentions(t *testing.T) {
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		switch filepath.Ext(name) {
		case ".go", ".txt", ".star", ".py", ".yaml", ".yml":
		default:
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range mention.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && m[1] != "docs/notes.md" { // which tests make up
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
