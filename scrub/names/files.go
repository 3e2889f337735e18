package names

import (
	"path"
	"slices"
	"strings"
)

// IsCredentialFile reports whether the file at a path with slashes holds credentials by its place or name, whatever it
// contains: ~/.ssh, ~/.aws, auth.json, .netrc, .env and their like. The path may be absolute, relative or begin with ~.
//
// What it names is taken out of a recording whole. So a name that as many ordinary files have (config.json, settings.xml,
// .yarnrc.yml, cert.pem) counts only where it stands in a place that says more; what is secret in others is found by its
// shape.
func IsCredentialFile(name string) bool {
	name = strings.ToLower(path.Clean(name))
	dir, base := path.Split(name)
	if anyPart(dir, surelyDirs) || slices.Contains(surelyFiles, base) || slices.Contains(surelySuffixes, path.Ext(base)) || hasTail(name, surelyPaths) {
		return true
	}
	if isExampleFile(base) {
		return false
	}
	return strings.HasPrefix(base, ".env.") || anyPart(dir, credentialDirs) || slices.Contains(credentialFiles, base) ||
		slices.Contains(credentialSuffixes, path.Ext(base)) || hasTail(name, credentialPaths) || hasTail(dir, credentialPathDirs) ||
		inHome(name, homeFiles) || isKeyFile(base) || isAccountFile(base) || isVaultPassword(base)
}

// isVaultPassword tells the files that Ansible has its passwords in: vault_pass, vault_password.txt, vault_pass_dev.txt.
func isVaultPassword(base string) bool {
	vault, ok := strings.CutPrefix(base, "vault_pass")
	return ok && (slices.Contains([]string{"", ".txt", "word", "word.txt"}, vault) || strings.HasPrefix(vault, "_") && path.Ext(base) == ".txt")
}

// anyPart tells whether one of names is a directory of dir.
func anyPart(dir string, names []string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if slices.Contains(names, part) {
			return true
		}
	}
	return false
}

// hasTail tells whether name is or ends in one of tails, each of which begins with a slash.
func hasTail(name string, tails []string) bool {
	name = "/" + name
	return slices.ContainsFunc(tails, func(tail string) bool { return strings.HasSuffix(name, tail) })
}

// inHome tells whether name is one of names right in somebody's home directory.
func inHome(name string, names []string) bool {
	dir, base := path.Split(name)
	if !slices.Contains(names, base) {
		return false
	}
	for _, home := range []string{"~/", "/root/", "/home/*/", "/users/*/"} {
		if ok, _ := path.Match(home, dir); ok {
			return true
		}
	}
	return false
}

// isExampleFile tells whether a part of a name says that the file is an example for people to copy.
func isExampleFile(base string) bool {
	for part := range strings.FieldsFuncSeq(base, func(r rune) bool { return strings.ContainsRune("._-", r) }) {
		if slices.Contains(exampleVariants, part) || part == "schema" || part == "tmpl" {
			return true
		}
	}
	return false
}

// isKeyFile tells the files of private keys: of SSH (id_rsa, id_ed25519_work, ssh_host_rsa_key), and .key and .pem files
// whose name does not say that the key is public. A certificate is public too.
func isKeyFile(base string) bool {
	ext := path.Ext(base)
	for _, kind := range []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"} {
		if rest, ok := strings.CutPrefix(base, kind); ok {
			return strings.HasPrefix(rest, "_") && ext == "" || strings.HasPrefix(rest, "-") && ext == "" ||
				slices.Contains([]string{".bak", ".old", ".orig", ".pem", ".key"}, rest)
		}
	}
	switch public := strings.Contains(base, "pub"); {
	case strings.HasPrefix(base, "ssh_host_"):
		return strings.HasSuffix(base, "_key")
	case ext == ".key":
		return !public
	case ext == ".pem":
		return !public && (strings.Contains(base, "key") || strings.Contains(base, "private"))
	}
	return false
}

// isAccountFile tells the JSON files that Google gives out for service accounts and clients.
func isAccountFile(base string) bool {
	if path.Ext(base) != ".json" {
		return false
	}
	for _, begin := range []string{"service-account", "service_account", "serviceaccount", "client_secret"} {
		if strings.HasPrefix(base, begin) {
			return true
		}
	}
	return strings.Contains(base, "-firebase-adminsdk-")
}

var exampleVariants = []string{"example", "sample", "template", "dist", "defaults"}

// Files that are none of examples, whatever a part of their names says.
var (
	surelyDirs  = []string{".ssh", ".aws", ".gnupg", ".azure", ".password-store"}
	surelyFiles = []string{
		".credentials.json", ".env", ".envrc", ".git-credentials", ".htpasswd", ".my.cnf", ".netrc", ".npmrc",
		".pgpass", ".pypirc", ".vault-token", "_netrc", "access_tokens.db", "application_default_credentials.json",
		"auth.json", "credentials", "credentials.db", "credentials.json", "credentials.toml", "id_dsa", "id_ecdsa",
		"id_ed25519", "id_rsa", "oauth_creds.json", "secrets.json", "secrets.yaml", "secrets.yml",
		"service-account.json", "service_account.json",
	}
	surelySuffixes = []string{".jks", ".kdbx", ".keystore", ".p12", ".pfx", ".ppk"}
	surelyPaths    = []string{"/.docker/config.json", "/.kube/config", "/gh/hosts.yml", "/.config/hub"}
)

// Files whose names may say that they are examples.
var (
	credentialDirs  = []string{".oci", ".cloudflared", "legacy_credentials"}
	credentialFiles = []string{
		".boto", ".claude.json", ".cookies", ".credentials", ".databrickscfg", ".dev.vars", ".dockercfg",
		".dockerconfigjson", ".envrc.local", ".env~", ".erlang.cookie", ".fetchmailrc", ".google_authenticator",
		".msmtprc", ".mylogin.cnf", ".s3cfg", ".secrets", ".terraformrc", ".vault_pass", ".vault_pass.txt",
		".vault_password", ".xauthority", "accesskeys.csv", "accesstokens.json", "cookies.txt", "credentials.csv",
		"credentials.tfrc.json", "credentials.yaml", "credentials.yml", "google-credentials.json", "kaggle.json",
		"key3.db", "key4.db", "kubeconfig", "logins.json", "msal_token_cache.bin", "msal_token_cache.json",
		"pgpass.conf", "rclone.conf", "rootkey.csv", "secrets.toml", "secring.gpg", "settings-security.xml",
		"storage_state.json", "terraform.rc", "token.json", "tokens.json",
	}
	credentialSuffixes = []string{".env", ".keychain", ".keychain-db", ".keytab", ".kubeconfig", ".pkcs12", ".tfstate", ".tfvars"}
	credentialPaths    = []string{
		"/.bundle/credentials", "/.cache/huggingface/token", "/.config/configstore/firebase-tools.json",
		"/.config/doctl/config.yaml", "/.config/github-copilot/apps.json", "/.config/github-copilot/hosts.json",
		"/.config/glab-cli/config.yml", "/.config/netlify/config.json", "/.config/ngrok/ngrok.yml",
		"/.config/pip/pip.conf", "/.config/sops/age/keys.txt", "/.fly/config.yml", "/.gradle/gradle.properties",
		"/.huggingface/token", "/.influxdbv2/configs", "/.m2/settings.xml", "/.ngrok2/ngrok.yml",
		"/.nuget/nuget/nuget.config", "/.pip/pip.conf", "/.railway/config.json", "/.snowflake/config.toml",
		"/.snowsql/config", "/.wrangler/config/default.toml",
	}
	credentialPathDirs = []string{"/.config/op/"}
	homeFiles          = []string{".yarnrc.yml"} // in a project it says how yarn works there
)
