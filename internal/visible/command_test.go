package visible

import "testing"

func TestCommand(t *testing.T) {
	for want, argv := range map[string][]string{
		"agent 'Name a colour of the sea'":      {"agent", "Name a colour of the sea"},
		"env MODEL=small python3 -u ./agent.py": {"env", "MODEL=small", "python3", "-u", "./agent.py"},
		`say 'it'\''s' '' '$HOME' 'a*' 'ä'`:     {"say", "it's", "", "$HOME", "a*", "ä"},
		"$TMP/run/agent ~/a.txt '$TMPS'":        {"$TMP/run/agent", "~/a.txt", "$TMPS"},
		"":                                      nil,
	} {
		if got := Command(argv); got != want {
			t.Errorf("%q: %s, want %s", argv, got, want)
		}
	}
}
