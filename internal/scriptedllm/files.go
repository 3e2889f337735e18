package scriptedllm

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// An upload is a file that came as multipart/form-data, with the form around it.
type upload struct {
	*multipart.FileHeader
	form *multipart.Form
}

// uploadOf reads the file of a form.
func uploadOf(r *http.Request, body []byte) (*upload, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxBody)
	if err != nil {
		return nil, err
	}
	if len(form.File["file"]) == 0 {
		return nil, errors.New("file: field required")
	}
	return &upload{form.File["file"][0], form}, nil
}

// anthropicFile is https://docs.anthropic.com/en/api/files-create.
func (e *Endpoint) anthropicFile(r *http.Request, _ string, body []byte) (object, error) {
	u, err := uploadOf(r, body)
	if err != nil {
		return nil, err
	}
	return object{
		"type": "file", "id": e.ids.Fresh("file_011C", llm.Base62, 20), "filename": u.Filename, "mime_type": u.Header.Get("Content-Type"),
		"size_bytes": u.Size, "created_at": e.ids.Now().UTC().Format(time.RFC3339Nano), "downloadable": false,
	}, nil
}

// openaiFile is https://platform.openai.com/docs/api-reference/files/create.
func (e *Endpoint) openaiFile(r *http.Request, _ string, body []byte) (object, error) {
	u, err := uploadOf(r, body)
	if err != nil {
		return nil, err
	}
	return object{
		"object": "file", "id": e.ids.Fresh("file-", llm.Base62, 22), "purpose": strings.Join(u.form.Value["purpose"], ""), "filename": u.Filename,
		"bytes": u.Size, "created_at": e.ids.Now().Unix(), "expires_at": nil, "status": "processed",
		"status_details": nil,
	}, nil
}

// geminiUpload is the resumable upload of https://ai.google.dev/api/files: a first request names the file and gets the
// URL for the bytes, a second one sends them all.
func (e *Endpoint) geminiUpload(w http.ResponseWriter, r *http.Request) {
	e.plain(w, r, "gemini", "", func(r *http.Request, _ string, body []byte) (object, error) {
		command := r.Header.Get("X-Goog-Upload-Command")
		switch {
		case command == "start":
			url := "https://" + r.Host + r.URL.Path + "?upload_id=" + e.ids.Fresh("A", llm.Base62, 40) + "&upload_protocol=resumable"
			w.Header().Set("X-Goog-Upload-Status", "active")
			w.Header().Set("X-Goog-Upload-Url", url)
			return object{}, nil
		case strings.Contains(command, "finalize"):
			w.Header().Set("X-Goog-Upload-Status", "final")
			return object{"file": e.geminiFile(r, body)}, nil
		}
		return nil, fmt.Errorf("upload command %q: want start, or upload with finalize", command)
	})
}

func (e *Endpoint) geminiFile(r *http.Request, content []byte) object {
	name := "files/" + e.ids.Fresh("", "0123456789abcdefghijklmnopqrstuvwxyz", 12)
	now := e.ids.Now().UTC()
	sum := sha256.Sum256(content)
	return object{
		"name": name, "mimeType": "text/plain", "sizeBytes": fmt.Sprint(len(content)),
		"createTime": now.Format(time.RFC3339Nano), "updateTime": now.Format(time.RFC3339Nano),
		"expirationTime": now.Add(48 * time.Hour).Format(time.RFC3339Nano),
		"sha256Hash":     base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum[:]))),
		"uri":            "https://" + r.Host + "/v1beta/" + name, "state": "ACTIVE", "source": "UPLOADED",
	}
}
