package names_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

func TestSaySecret(t *testing.T) {
	for name, want := range map[string]bool{
		"ANTHROPIC_API_KEY": true, "GITHUB_TOKEN": true, "client_secret": true, "DB_PASSWORD": true, "PASSWD": true,
		"AWS_CREDENTIALS": true, "Google_Credential_File": true, "x-api-key": true, "KEY": true, "X-Auth-Token": true,
		"PATH": false, "KEYBOARD": false, "TOKENIZERS_PARALLELISM": false, "MAX_TOKENS": false, "MONKEY": false, "": false,
		"SSH_AUTH_SOCK": false, "x-ratelimit-tokens": false,
	} {
		if got := names.SaySecret(name); got != want {
			t.Errorf("SaySecret(%q) = %v", name, got)
		}
	}
}

func TestIsCredentialFile(t *testing.T) {
	for name, want := range map[string]bool{
		"~/.ssh/config": true, "/home/u/.aws/credentials": true, "~/.codex/auth.json": true, ".netrc": true, ".env": true,
		"app/.env.local": true, "~/.docker/config.json": true, "~/.kube/config": true, "a/id_rsa": true, "x.p12": true,
		"~/.gemini/oauth_creds.json": true, "~/.claude/.credentials.json": true, "./.env": true, "~/.config/gh/hosts.yml": true,
		".env.example": false, "src/environment.go": false, "config.json": false, "ssh/config": false, "auth.go": false,
		"docs/.env.sample": false, "a/id_rsa.pub": false, "": false, "/": false,
	} {
		if got := names.IsCredentialFile(name); got != want {
			t.Errorf("IsCredentialFile(%q) = %v", name, got)
		}
	}
}

// TestCredentialFiles: what is taken for credentials, and what ordinary projects have.
func TestCredentialFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"~/.config/gcloud/legacy_credentials/ann/adc.json": true, "~/.azure/msal_token_cache.bin": true, "deploy/kubeconfig": true,
		"~/.yarnrc.yml": true, "/home/ann/.yarnrc.yml": true, "~/.gem/credentials": true, "~/.cargo/credentials.toml": true,
		"~/.m2/settings.xml": true, "~/.gradle/gradle.properties": true, "~/.terraform.d/credentials.tfrc.json": true,
		"~/.terraformrc": true, "~/.boto": true, "~/.s3cfg": true, "~/.config/rclone/rclone.conf": true, "~/.config/op/config": true,
		"~/.config/git/credentials": true, "infra/prod.tfvars": true, "infra/terraform.tfstate": true, "tls/server.key": true,
		"tls/server-key.pem": true, "privkey.pem": true, "id_ed25519_work": true, "backup/id_rsa.bak": true, "ssh_host_rsa_key": true,
		"service-account-prod.json": true, "client_secret_12.apps.googleusercontent.com.json": true, "config/prod.env": true,
		"app-firebase-adminsdk-x1.json": true, ".env.production": true, "A/Secrets.toml": true, ".dev.vars": true,
		"config/credentials.yml": true,

		"package.json": false, "credentials.md": false, "credentials.go": false, "auth.json.md": false, "settings.xml": false,
		".yarnrc.yml": false, "web/.yarnrc.yml": false, "gradle.properties": false, "cert.pem": false, "ca.pem": false,
		"public_key.pem": false, "server.pub.key": false, "id_rsa.go": false, "id_rsa_work.pub": false, "keys.go": false,
		".env.local.example": false, "prod.env.sample": false, "example.env": false, "terraform.tfvars.example": false,
		"service-account-schema.json": false, "service_account.py": false, "ssh_host_rsa_key.pub": false, "main.tf": false,
		"config/op/x": false, "environment.env.ts": false, "monkey.pem.md": false, "credentials/readme.md": false,
	} {
		if got := names.IsCredentialFile(name); got != want {
			t.Errorf("IsCredentialFile(%q) = %v", name, got)
		}
	}
}

// TestFurtherCredentialFiles: the same of exports, caches and vaults.
func TestFurtherCredentialFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"token.json": true, "auth/tokens.json": true, "~/.pip/pip.conf": true, "~/.config/pip/pip.conf": true, "cookies.txt": true, "~/.cookies": true,
		"storage_state.json": true, "google-credentials.json": true, "credentials.csv": true, "rootkey.csv": true, "accessKeys.csv": true,
		".env~": true, "vault_pass.txt": true, "vault_password": true, "vault_pass_prod.txt": true, ".vault_pass": true, ".envrc.local": true,

		"application.properties": false, "config/database.yml": false, "docker-compose.yml": false, "settings.py": false, "wp-config.php": false,
		"tokens.go": false, "tokenizer.json": false, "cookies.md": false, "pip.conf": false, "vault_pass.py": false, "design-tokens.json": false,
		"token.json.example": false, "vault_passing.txt": false, "storage_state.sample.json": false,
	} {
		if got := names.IsCredentialFile(name); got != want {
			t.Errorf("IsCredentialFile(%q) = %v", name, got)
		}
	}
}

// TestLearnable: what is too long for a word may be a secret, though it holds no digit: one in two hundred random texts of letters and digits.
func TestLearnable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"GOHEITAFTYYSNSHUQCSECVHBOW": true, "AUTHENTICATIONFAILED": false, "authentication": false, "/dashboard/home": false, "Qw7Zr2Lm9Kx4": true,
	} {
		if names.Learnable(value) != want {
			t.Errorf("%s: %v", value, !want)
		}
	}
}
