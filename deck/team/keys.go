package team

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// bucketKeys are those of the environment, else of the profile that AWS_PROFILE names in AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials; none
// where nobody has set any.
func bucketKeys() (aws.Credentials, error) {
	keys := keysOf(os.Getenv, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
	if keys.HasKeys() {
		return keys, nil
	}
	path := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return aws.Credentials{}, nil
		}
		path = filepath.Join(home, ".aws", "credentials")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return aws.Credentials{}, nil
	}
	if err != nil {
		return aws.Credentials{}, err
	}
	defer f.Close()
	values, wanted, section := make(map[string]string), cmp.Or(os.Getenv("AWS_PROFILE"), "default"), ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
		} else if key, value, ok := strings.Cut(line, "="); ok && section == wanted && line[0] != '#' && line[0] != ';' {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return keysOf(func(name string) string { return values[name] }, "aws_access_key_id", "aws_secret_access_key", "aws_session_token"), lines.Err()
}

func keysOf(value func(name string) string, id, secret, token string) aws.Credentials {
	return aws.Credentials{AccessKeyID: value(id), SecretAccessKey: value(secret), SessionToken: value(token)}
}
