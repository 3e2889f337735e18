package team

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// opened is a bucket of a server, and the pauses that it makes.
func opened(t *testing.T, serve http.HandlerFunc) (*bucket, *[]time.Duration) {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	b, err := openBucket(t.Context(), &url.URL{Scheme: "s3", Host: "runs", Path: "/a", RawQuery: "endpoint=" + srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	s := b.(*bucket)
	s.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	return s, &pauses
}

// TestTriedAgain: what a server cannot do now is asked for again, whole, and not for ever; what it refuses is not.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	d, content := cas.Sum([]byte("content")), "content"
	for _, c := range []struct {
		status, times, requests int
		fine                    bool
	}{{503, 2, 3, true}, {429, 1, 2, true}, {500, 99, tries, false}, {403, 99, 1, false}} {
		puts := 0
		s, pauses := opened(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				if r.URL.Path != "/runs" {
					w.WriteHeader(http.StatusNotFound)
				}
				return
			}
			got, err := io.ReadAll(r.Body)
			if puts++; err != nil || string(got) != content {
				t.Errorf("put %d: %q, %v", puts, got, err)
			}
			if puts <= c.times {
				w.WriteHeader(c.status)
			}
		})
		err := s.Put(t.Context(), d, int64(len(content)), func() io.Reader { return strings.NewReader(content) })
		if (err == nil) != c.fine || puts != c.requests {
			t.Errorf("%d, %d times: %d requests, %v", c.status, c.times, puts, err)
		}
		if len(*pauses) != puts-1 || !slices.IsSorted(*pauses) || len(*pauses) > 1 && (*pauses)[1] != 2*(*pauses)[0] {
			t.Errorf("%d, %d times: pauses %v", c.status, c.times, *pauses)
		}
	}
}

// TestOtherRegion: the region that a server tells is the one that the signature has.
func TestOtherRegion(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s, _ := opened(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=id/") {
			t.Errorf("signed with %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
		if !strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3/aws4_request") {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	if s.region != "eu-west-1" {
		t.Errorf("region %s", s.region)
	}
}

// TestBucketKeys: the environment comes first, then the profile's.
func TestBucketKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	const text = "# mine\n[default]\naws_access_key_id = a\naws_secret_access_key=b=\n\n[ci]\nAWS_ACCESS_KEY_ID=c\naws_secret_access_key = d\naws_session_token = e\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	for _, c := range []struct{ id, profile, want string }{{"", "", "a b= "}, {"", "ci", "c d e"}, {"", "none", "  "}, {"x", "ci", "x y "}} {
		t.Setenv("AWS_ACCESS_KEY_ID", c.id)
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		t.Setenv("AWS_SESSION_TOKEN", "")
		t.Setenv("AWS_PROFILE", c.profile)
		k, err := bucketKeys()
		if got := k.AccessKeyID + " " + k.SecretAccessKey + " " + k.SessionToken; err != nil || got != c.want {
			t.Errorf("%q %q: %q, %v, want %q", c.id, c.profile, got, err, c.want)
		}
	}
}
