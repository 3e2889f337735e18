package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

const failed = "p: the expression failed, which denies: "

func TestExpressions(t *testing.T) {
	params := `{"command":"rm -rf /","n":3,"f":1.5,"big":9007199254740993,"list":["a","bb","ccc"],"o":{"x":[1,2,{"y":null}]},"t":true}`
	state := states{"env": `"prod"`, "users": `[{"name":"x","n":2}]`, "a b": `7`}
	for _, tt := range []struct{ text, want string }{ // want: "" allowed, "deny" denied by being true, else part of the reason
		{`false`, ""},
		{`true`, "deny"},
		{`tool == "shell"`, "deny"},
		{`tool != "shell"`, ""},
		{`type == "tool_call" && agent == "me"`, "deny"},
		{`parameters.n > 2`, "deny"},
		{`parameters.n == 3.0`, "deny"},
		{`parameters.f > 1 and parameters.f < 2`, "deny"},
		{`parameters.big == 9007199254740993`, "deny"},
		{`parameters.big == 9007199254740992`, ""},
		{`parameters.command contains "rm"`, "deny"},
		{`parameters.command startsWith "ls"`, ""},
		{`parameters.command matches "^rm\\s"`, "deny"},
		{`not (parameters.command matches "^rm\\s")`, ""},
		{`any(parameters.list, # matches "^c+$")`, "deny"},
		{`all(parameters.list, len(#) < 3)`, ""},
		{`count(parameters.list, # in ["a", "bb"]) == 2`, "deny"},
		{`"a" in parameters.list`, "deny"},
		{`"n" in parameters`, "deny"},
		{`len(parameters.list) > 5`, ""},
		{`sum(map(parameters.list, len(#))) == 6`, "deny"},
		{`parameters.o.x[2].y == nil`, "deny"},
		{`parameters.o.x[0] + 1 == 2`, "deny"},
		{`parameters.command + "x" endsWith "/x"`, "deny"},
		{`parameters.missing == nil`, "deny"},
		{`(parameters.missing ?? "") contains "x"`, ""},
		{`parameters?.missing?.deeper == "x"`, ""},
		{`lower(trim(" A ")) == "a"`, "deny"},
		{`let c = split(parameters.command, " "); c[0] in ["rm", "dd"]`, "deny"},
		{`state.env == "prod"`, "deny"},
		{`state["env"] == "dev"`, ""},
		{`state["a b"] == 7`, "deny"},
		{`state.none == nil`, "deny"},
		{`any(state.users, .name == "x" && .n > 1)`, "deny"},
		{`len(state) == 3`, "deny"},
		{`state[parameters.list[0] + " b"] == 7`, "deny"},
		{`parameters.t`, "deny"},
		{`parameters.t ? false : true`, ""},
		{`parameters.missing contains "x"`, ""},
		{`parameters.missing matches "x"`, ""},
		// What fails denies.
		{`parameters.missing.deeper == 1`, failed},
		{`parameters.list[7] == "x"`, failed},
		{`parameters.n contains "x"`, failed},
		{`parameters.n matches "x"`, failed + "column 14: matches: expected a text, got int"},
		{`parameters.command`, failed},
		{`int(parameters.command) > 1`, failed},
		{`parameters.n / 0 > 1`, "deny"}, // an infinity
		{`parameters.n % 0 == 1`, failed},
	} {
		t.Run(tt.text, func(t *testing.T) {
			for _, r := range []Rule{{Name: "p", Rule: Expr, Pattern: tt.text}, {Name: "p", Rule: Expr, Value: quoted(tt.text)}} {
				s := mustCompile(t, r)
				v := s.Check(&Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: parameters(t, params)}, state, "me")
				got := strings.Join(reasons(v), "\n")
				want := tt.want
				if want == "deny" {
					want = "p: denied where " + tt.text
				}
				if v.Allowed != (want == "") || !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func TestExpressionsThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`1 +`, "column 3: "},
		{`tool = "x"`, "column"},
		{`1`, "true or false"},
		{`tool`, "true or false"},
		{`unknown == 1`, "unknown name unknown"},
		{`parameters.command matches parameters.pattern`, "column 20: expected a text in quotes behind matches"},
		{`tool matches "("`, "RE2"},
		{`tool matches "` + strings.Repeat("a{900}", 6) + `"`, "steps"},
		{`now() > now()`, "now is not to be had here"},
		{`date("2020-01-01") > date("2020-01-01")`, "not to be had here"},
		{`len(repeat("a", 1000000)) > 1`, "repeat is not to be had here"},
		{`len(1..1000000) > 1`, "ranges are not to be had here"},
		{`keys(parameters)[0] == "a"`, "keys is not to be had here"},
		{`toJSON(parameters) == ""`, "not to be had here"},
		{`env("HOME") == ""`, "expected one of the functions"},
		{`__charge(tool) == ""`, "expected one of the functions"},
		{`__matches(tool, "(")`, "expected one of the functions"},
		{`tool.Foo() == 1`, "column"},
		{strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000), ""},
		{strings.Repeat("!", 4000) + "true", "column"},
		{"true" + strings.Repeat(" and true", 400), "nodes"},
		{strings.Repeat("[", 2000), "column"},
	} {
		t.Run(shorten(tt.text), func(t *testing.T) {
			_, err := Compile([]Rule{{Name: "p", Rule: Expr, Pattern: tt.text}})
			if tt.want == "" {
				return // parentheses leave nothing behind
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// An expression ends: what it looks at is counted, and what it makes.
func TestExpressionsEnd(t *testing.T) {
	var list []int
	for i := range 3000 {
		list = append(list, i)
	}
	numbers, _ := json.Marshal(list)
	text := strings.Repeat("a", 1<<20)
	p := parameters(t, fmt.Sprintf(`{"l":%s,"s":"%s"}`, numbers, text))
	double := "let a0 = parameters.s; "
	for i := range 40 {
		double += fmt.Sprintf("let a%d = a%d + a%d; ", i+1, i, i)
	}
	for _, expression := range []string{
		`any(parameters.l, let x = #; any(parameters.l, # == -x - 1))`,
		`all(parameters.l, all(parameters.l, all(parameters.l, # >= 0)))`,
		`len(map(parameters.l, map(parameters.l, #))) == 0`,
		`any(parameters.l, parameters.s contains "b")`,
		`any(parameters.l, parameters.s == parameters.s + "x")`,
		`any(parameters.l, upper(parameters.s) == "x")`,
		`any(parameters.l, len(split(parameters.s, "a")) == 0)`,
		`any(parameters.l, "x" in split(parameters.s, "a"))`,
		`any(parameters.l, parameters == {"a": 1})`,
		`any(parameters.l, parameters.s matches "^(a|aa)+b$")`,
		`any(parameters.l, [parameters.l, parameters.l] == [1])`,
		`any(parameters.l, string(parameters) == "")`,
		double + `a40 == ""`,
		`split(parameters.s, "a")[0] == "x"`,
	} {
		t.Run(shorten(expression), func(t *testing.T) {
			s := mustCompile(t, Rule{Name: "p", Rule: Expr, Pattern: expression})
			began := cputime.Spent()
			v := s.Check(&Action{Tool: "t", Parameters: p}, nil, "")
			if v.Allowed || !strings.Contains(reasons(v)[0], failed) {
				t.Errorf("got %q", reasons(v))
			}
			t.Log(cputime.Spent()-began, reasons(v)[0])
		})
	}
}
