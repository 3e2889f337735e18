package team_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/team"
)

func TestTokens(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		if at.http {
			t.Skip("who has a token alone makes none: the pair without a server does this")
		}
		s := at.direct(t)
		secret, err := s.Grant(t.Context(), &team.Token{Name: "ci", Project: "p", Roles: []string{team.RolePush, team.RoleRead}}, 0)
		must(t, err)
		who, err := s.Identify(t.Context(), secret)
		if must(t, err); who.Name != "ci" || who.Project != "p" || !who.May(team.RoleRead) || who.May(team.RoleAdmin) || who.Expires != nil {
			t.Errorf("%+v", who)
		}
		if file, ok := strings.CutPrefix(at.runs, "sqlite://"); ok {
			_, end, _ := strings.Cut(strings.TrimPrefix(secret, "tapedeck_"), "_")
			holds(t, file[:strings.LastIndex(file, "/")], strings.ToLower(end))
		}
		other, err := s.Grant(t.Context(), &team.Token{Name: "other", Roles: []string{team.RoleRead}}, time.Hour)
		must(t, err)
		over, err := s.Grant(t.Context(), &team.Token{Name: "over", Roles: []string{team.RoleRead}}, 1) // less than a ms: never one that lives
		must(t, err)
		for _, bad := range []string{"", "tapedeck_", secret[:len(secret)-1], secret + "x", strings.ToUpper(secret), secret[:20] + other[20:], "tapedeck_%_x", over} {
			if _, err := s.Identify(t.Context(), bad); !errors.Is(err, team.ErrNoToken) && bad != over {
				t.Errorf("%q: %v", bad, err)
			}
		}
		for _, bad := range []team.Token{{Name: "ci", Roles: team.Roles}, {Name: "", Roles: team.Roles}, {Name: "a b", Roles: team.Roles}, {Name: "x"}, {Name: "x", Roles: []string{"root"}}} {
			if _, err := s.Grant(t.Context(), &bad, 0); err == nil {
				t.Errorf("granted: %+v", bad)
			}
		}
		must(t, s.Revoke(t.Context(), "ci"))
		if _, err := s.Identify(t.Context(), secret); !errors.Is(err, team.ErrNoToken) {
			t.Errorf("revoked: %v", err)
		}
		if s.Revoke(t.Context(), "ci") == nil || s.Revoke(t.Context(), "nobody") == nil {
			t.Error("revoked what was not there")
		}
		all, err := s.Tokens(t.Context())
		if must(t, err); len(all) != 3 || all[0].Name != "ci" || all[0].Revoked == nil || all[1].Expires == nil {
			t.Errorf("%+v", all)
		}
	})
}

// TestExpired: a token ends by the database's clock, which a test cannot turn: it is set back in the row.
func TestExpired(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		if at.http {
			t.Skip("a server shows no tables: the pair without a server does this")
		}
		s := at.direct(t)
		secret, err := s.Grant(t.Context(), &team.Token{Name: "ci", Roles: team.Roles}, time.Hour)
		must(t, err)
		_, err = s.Identify(t.Context(), secret)
		must(t, err)
		raw(t, at, "UPDATE tokens SET expires = expires - 3600000")
		if _, err := s.Identify(t.Context(), secret); !errors.Is(err, team.ErrNoToken) {
			t.Errorf("over its time: %v", err)
		}
	})
}

// raw runs a statement on the database of a place.
func raw(t *testing.T, at place, statement string) error {
	t.Helper()
	_, err := at.database(t).ExecContext(t.Context(), statement)
	return err
}

// TestAudit: what changes runs and tokens is in the audit, which only grows, and says nothing of a run that is gone but its id.
func TestAudit(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		if at.http {
			t.Skip("what a server writes into the audit is tried in package remote")
		}
		s := at.direct(t)
		_, _, err := s.Push(team.As(t.Context(), "ci"), made(t, "one", "marigold", "beta", nil), &team.PushOptions{Project: "p"})
		must(t, err)
		sign, _ := signer(t)
		_, err = s.Remove(t.Context(), "p", "one", "why", sign)
		must(t, err)
		_, err = s.Grant(t.Context(), &team.Token{Name: "eva", Roles: team.Roles}, 0)
		must(t, err)
		must(t, s.Revoke(t.Context(), "eva"))
		for _, change := range []string{"UPDATE audit SET token = 'x'", "DELETE FROM audit", "DELETE FROM audit WHERE seq = 1"} {
			if err := raw(t, at, change); err == nil || !strings.Contains(err.Error(), "only grows") {
				t.Errorf("%s: %v", change, err)
			}
		}
		for project, want := range map[string]string{"*": "p ci push one, p  purge one,   grant eva,   revoke eva", "p": "p ci push one, p  purge one", "q": ""} {
			of := &project
			if project == "*" {
				of = nil
			}
			acts, err := s.Acts(t.Context(), of, 100)
			must(t, err)
			var got []string
			for _, a := range acts {
				got = append(got, strings.Join([]string{a.Project, a.Token, a.What, a.About}, " "))
				if time.Since(a.At).Abs() > time.Hour {
					t.Errorf("at %v", a.At)
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: got %q, want %q", project, strings.Join(got, ", "), want)
			}
		}
	})
}
