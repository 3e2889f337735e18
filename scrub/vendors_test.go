package scrub_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestVendorsHarmless: what begins as a vendor's key does, and is none.
func TestVendorsHarmless(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	rng := rand.New(rand.NewPCG(23, 24))
	texts := []string{
		"gsk_private_key_of_the_service_account_of_many_projects_1", "fw_version_1_2_3_release_candidate_with_more", "fw_getFirmwareVersionOfDevice()",
		"jina_embeddings_v2_base_en_2024_with_a_long_name_of_a_model_1", "jinaai/jina-embeddings-v3", "xai-grok-4-fast-reasoning-2025-09", "r8_to_r16_conversion_function_pointer_ab1",
		"fc-list : family style", "fc-match-1234567890abcdefghijklmnopqrstuv", "sk_buff_head_init_class_of_the_socket_layer_1234567", "key-value store 2",
		"sort-key-0123456789", "csk-pool-of-clock-sources-in-the-kernel-tree-0123456789", "tvly-mcp", "nvapi-nvidia-driver", "pcsk_9_inhibitor", "e2b_dev_code_interpreter",
		"ops_eye_catcher_of_a_button_that_is_shown_in_the_corner_of_the_page", "figd_", "ntn_notification_of_the_thing_that_happened_at_12", "vcr_cassette_0123456789_names",
		"vci_int_count", "BSAConfigurationManagerFactory", "sntrys_", "sbp_set_break_point", "lsv2_pt_", "dckr_pat_", "ATBB", "GOCSPX-", "ya29.", "lsv2_pt_partition_table_of_the_volume",
		"12345678:AA", "time 12:30:AAAAAAAAAA", "00:11:22:AA:BB:CC:DD:EE", "https://discord.com/api/webhooks/123456789012345678", "/webhooks/github/incoming/1234",
		"https://example.com/webhooks/123456789012345678/messages/123456789012345678",
		"the machine learning model", "machine login screen", "a machine of ours: login as root, password in the vault", "state machine\nlogin -> logout",
		"a.whl,sha256=kq-fw_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LA,123", "sha256=fw_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LAxyz0,1", "x-vcp_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LAxyz0",
		"f'machine {host} login {user} password {self.password}'", "`machine HOST login NAME password SECRET`, over lines", "machine h login u password )\x00\x01r",
		"machine: ubuntu login: ann", "machine HOST login USER password <your password>", "machine h login u password $TOKEN", "machine h login u password xxxxxx",
	}
	for range 2000 {
		texts = append(texts, b64(rng, 57), b64(rng, 33), hexOf(rng, 16), hexOf(rng, 20), hexOf(rng, 32), "key-"+uuid(rng), "fc-"+hexOf(rng, 4), uuid(rng))
	}
	for _, text := range texts {
		quoted, _ := json.Marshal(text)
		for _, text := range []string{text, string(quoted)} {
			if got := s.String(text); got != text {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
}

// TestNetrc: the passwords of a .netrc are found in any text, on a line or over several, as JSON too.
func TestNetrc(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"machine api.x login ann password hunter2\n", "machine api.x login ann password td_#1\n"},
		{"machine api.x\n  login ann\n  password hunter2\nmachine h2\n\tpassword other;1", "machine api.x\n  login ann\n  password td_#1\nmachine h2\n\tpassword td_#2"},
		{`{"text":"machine api.x\nlogin ann\npassword hunter2\n"}`, `{"text":"machine api.x\nlogin ann\npassword td_#1\n"}`},
		{`"machine h password pw7\""`, `"machine h password td_#1\""`},
		{`{\"a\":\"machine h\\nlogin u\\npassword pw7\"}`, `{\"a\":\"machine h\\nlogin u\\npassword td_#1\"}`},
		{"machine h.x account a port 1 login u password p", "machine h.x account a port 1 login u password td_#1"},
		{"machine localhost login u password swordfish x swordfish", "machine localhost login u password td_#1 x swordfish"},
		{`"machine\th.x\tpassword\tpw7"`, `"machine\th.x\tpassword\ttd_#1"`}, {"machine%20h.x%20password%20pw7", "machine%20h.x%20password%20td_#1"},
		{"machine h\nlogin u password swordfish", "machine h\nlogin u password td_#1"},
		{"machine h login u password hunter2", "machine h login u password td_#1"},
		{"machine learning account login password reset", "machine learning account login password reset"},
		{"the machine api login bob password is required", "the machine api login bob password is required"},
		{"machine learning password protected\n", "machine learning password protected\n"},
		{"that machine works. login bob password reset, then", "that machine works. login bob password reset, then"},
		{"machine h login u password k9Zp2QvT x k9Zp2QvT", "machine h login u password td_#1 x td_#1"},
	} {
		for _, pieces := range []int{1, 3, 1000} {
			got := written(scrub.New(testKey, nil), tt.text, func(n int) int { return min(n, pieces) })
			if got := string(scrub.Renumber([]byte(got))); got != tt.want {
				t.Errorf("%s\nin pieces of %d became %s", tt.text, pieces, got)
			}
		}
	}
}

// TestNetrcHeldIsBounded: a machine with blanks without end holds little back, of which little is looked at again with each piece.
func TestNetrcHeldIsBounded(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	for _, begin := range []string{"machine", "machine h", "machine h password"} {
		for _, blank := range []string{" ", `\n`, "%20"} {
			var out strings.Builder
			w := s.Writer(&out)
			text := begin + strings.Repeat(blank, 64<<10)
			for piece := range slices.Chunk([]byte(text), 64) {
				if _, err := w.Write(piece); err != nil {
					t.Fatal(err)
				}
				if w.Held() > 2<<10 {
					t.Fatalf("%s, %q: %d bytes are held", begin, blank, w.Held())
				}
			}
			if err := w.Close(); err != nil || out.String() != text {
				t.Errorf("%s, %q: %v, or another text", begin, blank, err)
			}
		}
	}
}

// TestVendorsAnySplit: however a stream with keys is cut, the same comes out.
func TestVendorsAnySplit(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	names, places := slices.Sorted(maps.Keys(ownShapes)), slices.Sorted(maps.Keys(placed))
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var b strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			if p := placed[rapid.SampledFrom(places).Draw(t, "place")]; rapid.Bool().Draw(t, "placed") {
				b.WriteString(p.before + example(rng, p.secret))
			} else {
				b.WriteString(example(rng, ownShapes[rapid.SampledFrom(names).Draw(t, "name")]))
			}
			b.WriteString(rapid.SampledFrom(besidesAfter).Draw(t, "after") + rapid.SampledFrom(besidesBefore).Draw(t, "before"))
		}
		want := s.String(b.String())
		if got := written(s, b.String(), func(n int) int { return rapid.IntRange(1, n).Draw(t, "piece") }); got != want {
			t.Fatalf("%q\n  whole %q\nin parts %q", b.String(), want, got)
		}
	})
}

// TestRuleNames: what finds a secret by its shape is listed.
func TestRuleNames(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	names := s.RuleNames()
	if !slices.IsSorted(names) || len(names) < 200 {
		t.Errorf("%d rules: %v", len(names), names)
	}
	rng := rand.New(rand.NewPCG(25, 26))
	for name, re := range ownShapes {
		s.String(" " + example(rng, re) + " ")
		if len(s.Counts()) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	for rule := range s.Counts() {
		if !slices.Contains(names, rule) {
			t.Errorf("%s is not listed", rule)
		}
	}
}
