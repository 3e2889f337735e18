//go:build agents

package agents

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

var opencodeCues = map[string][]step{
	"errand alpha": {
		{think: "First I look.", say: "I look at both.", calls: []toolCall{
			{"read", map[string]any{"filePath": "missing.txt"}},
			{"bash", map[string]any{"command": "echo found; exit 3", "description": "look"}},
		}},
		{say: "I write it.", calls: []toolCall{{"apply_patch", map[string]any{
			"patchText": "*** Begin Patch\n*** Add File: hello.txt\n+marigold\n*** End Patch",
		}}}},
		{say: "Written: hello.txt."},
	},
	"errand beta": {
		{calls: []toolCall{{"task", map[string]any{
			"description": "count words", "prompt": "errand iota: count the words", "subagent_type": "general",
		}}}},
		{say: "The other one counted."},
	},
	"errand iota": {
		{calls: []toolCall{{"bash", map[string]any{"command": "wc -w hello.txt", "description": "count"}}}},
		{say: "One word."},
	},
	"errand gamma": {{say: "Well, let me", hold: true}},
	"errand delta": {{status: 400}},
	"errand zeta":  {{say: "Another talk."}},
}

// opencodeRuns is a session, and another one of four runs: one with a sub-agent, whose session is one of its own, one that fails, and
// the last one interrupted.
func (st *stage) opencodeRuns(t *testing.T) {
	base := []string{"run", "-m", "openai/gpt-5"}
	t.Log(st.run(t, append(base, "errand zeta: talk")...))
	t.Log(st.run(t, append(base, "errand alpha: write hello.txt")...))
	t.Log(st.run(t, append(base, "-c", "errand beta: have the words counted")...))
	t.Log(st.run(t, append(base, "-c", "errand delta: go on")...))
	st.interrupt(t, "errand gamma", append(base, "-c", "errand gamma: think it over")...)
}

// TestFixturesOpencode makes a database and an export.
func TestFixturesOpencode(t *testing.T) {
	fixtures(t, "opencode", opencodeCues, func(t *testing.T, st *stage) {
		st.opencodeRuns(t)
		st.saveDatabase(t, "opencode/opencode.db", filepath.Join(st.Home, ".local/share/opencode/opencode.db"))
		id := st.newestSession(t)
		st.save(t, "opencode/export.json", []byte(st.run(t, "export", id).Stdout))
	})
}

// TestFixturesOpencodeFiles is the same with an opencode before 1.2, which had no database: that of the npm package
// opencode-linux-x64-baseline@1.1.65 below $TAPEDECK_OPENCODE_OLD.
func TestFixturesOpencodeFiles(t *testing.T) {
	old := os.Getenv("TAPEDECK_OPENCODE_OLD")
	if old == "" {
		t.Skip("TAPEDECK_OPENCODE_OLD names no node_modules folder")
	}
	fixtures(t, "opencode", opencodeCues, func(t *testing.T, st *stage) {
		st.program = []string{filepath.Join(old, opencodeBin())}
		st.opencodeRuns(t)
		for _, kind := range []string{"session", "message", "part"} {
			found, err := filepath.Glob(filepath.Join(st.Home, ".local/share/opencode/storage", kind, "*", "*.json"))
			if err != nil || len(found) == 0 {
				t.Fatalf("no %s: %v", kind, err)
			}
			for _, path := range found {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				rel, _ := filepath.Rel(filepath.Join(st.Home, ".local/share/opencode"), path)
				st.save(t, "opencode/"+filepath.ToSlash(rel), b)
			}
		}
	})
}

// newestSession is the id of the session that changed last.
func (st *stage) newestSession(t *testing.T) string {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(st.Home, ".local/share/opencode/opencode.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var id string
	if err := db.QueryRow("SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT 1").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// saveDatabase writes the three tables of a conversation, as opencode made them, without the paths of the box.
func (st *stage) saveDatabase(t *testing.T, name, from string) {
	t.Helper()
	in, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := filepath.Join(t.TempDir(), "small.db")
	out, err := sql.Open("sqlite", to)
	if err != nil {
		t.Fatal(err)
	}
	out.SetMaxOpenConns(1)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := out.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec("PRAGMA page_size = 1024")
	for _, table := range []string{"session", "message", "part"} {
		for _, row := range query(t, in, "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type DESC", table) {
			exec(fmt.Sprint(row[0]))
		}
		for _, row := range query(t, in, "SELECT * FROM "+table+" ORDER BY id") {
			for i := range row {
				if s, ok := row[i].(string); ok {
					row[i] = string(st.plain([]byte(s)))
				}
			}
			exec("INSERT INTO "+table+" VALUES (?"+strings.Repeat(",?", len(row)-1)+")", row...)
		}
	}
	exec("VACUUM")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	st.save(t, name, b)
}

func query(t *testing.T, db *sql.DB, text string, args ...any) (out [][]any) {
	t.Helper()
	rows, err := db.Query(text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for rows.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}
