package deck_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// programs are what the test binary plays inside the jail. None of them knows of the recorder.
var programs = map[string]func(args []string) int{
	"get":      playGet,
	"dictate":  playDictate,
	"post":     playPost,
	"errand":   playErrand,
	"chunks":   playChunks,
	"ways-out": playWaysOut,
	"secrets":  playSecrets,
	"talk":     playTalk,
	"forever":  playForever,
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}

// playGet prints the body of each URL.
func playGet(urls []string) int {
	for _, u := range urls {
		b, err := get(u)
		if err != nil {
			return fail(err)
		}
		fmt.Printf("%s: %s\n", u, b)
	}
	return 0
}

// playPost sends its second argument to the first as JSON, and says no more than that it did.
func playPost(args []string) int {
	res, err := http.Post(args[0], "application/json", strings.NewReader(args[1]))
	if err != nil {
		return fail(err)
	}
	_, err = io.Copy(io.Discard, res.Body) // an answer that it leaves early would be a withdrawn one
	if res.Body.Close(); err != nil {
		return fail(err)
	}
	fmt.Println("sent")
	return 0
}

// playErrand prints the body of each URL and two files, and writes two.
func playErrand(urls []string) int {
	for _, u := range urls {
		b, err := get(u)
		if err != nil {
			return fail(err)
		}
		fmt.Printf("%s\n", b)
	}
	in, err1 := os.ReadFile("in.txt")
	cache, err2 := os.ReadFile("cache")
	err3 := errors.Join(
		os.WriteFile("out.txt", slices.Concat(in, cache), 0o644),
		os.WriteFile("cache", append(cache, " and once more"...), 0o644),
	)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fail(err)
	}
	fmt.Printf("%s %s\n", in, cache)
	return 0
}

// playChunks prints an answer, and what ended it.
func playChunks(args []string) int {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Accept-Encoding", args[1])
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return fail(err)
	}
	defer res.Body.Close()
	var body io.Reader = res.Body
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(res.Body); err != nil {
			return fail(err)
		}
	}
	_, err = io.Copy(os.Stdout, body)
	fmt.Println("ended by", err)
	return 0
}

// playWaysOut tries every way out and prints how it failed. args[0] is an address on the host's loopback.
func playWaysOut(args []string) int {
	try := func(what string, err error) {
		if err == nil {
			fmt.Println(what, "GOT OUT")
			return
		}
		fmt.Println(what, "failed")
	}
	dial := func(network, addr string) error {
		c, err := net.DialTimeout(network, addr, 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // who is reached answers at once, or is seen to be
		if _, err := c.Write([]byte("hello\n")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
	try("host loopback", dial("tcp", args[0]))
	try("another port", dial("tcp", "192.0.2.1:22"))
	try("udp", dial("udp", "192.0.2.1:9999"))
	_, err := get("https://192.0.2.7/")
	try("literal ip", err)
	_, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	try("raw socket", err)
	_, err = syscall.Socket(40 /* AF_VSOCK */, syscall.SOCK_STREAM, 0)
	try("vsock", err)
	return 0
}

// playSecrets sends and prints a secret in many places. args[0] is the URL.
func playSecrets(args []string) int {
	secret := os.Getenv("CANARY_API_KEY")
	body, _ := json.Marshal(map[string]any{"model": "m", "note": "the key is " + secret})
	req, err := http.NewRequest(http.MethodPost, args[0]+"?key="+secret, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("X-Api-Key", secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail(err)
	}
	defer res.Body.Close()
	echo, err := io.ReadAll(res.Body)
	if err != nil {
		return fail(err)
	}
	fmt.Printf("status %d, the answer holds my key: %v\n", res.StatusCode, bytes.Contains(echo, []byte(secret)))
	fmt.Println("my key is", secret)
	os.WriteFile("leaked.txt", []byte("key="+secret+"\n"), 0o644)
	return 0
}

// playTalk holds args[1] conversations at once with a model at args[0], and prints each when it is over.
func playTalk(args []string) int {
	var n int
	fmt.Sscan(args[1], &n)
	out := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = converse(args[0], i%2) })
	}
	wg.Wait()
	for i, s := range out {
		fmt.Println(i, s)
	}
	return 0
}

// playDictate gives wc its second argument to count, and reads what that says where the first is "read".
func playDictate(args []string) int {
	wc := exec.Command("wc", "-l")
	wc.Stdin = strings.NewReader(args[1])
	if args[0] == "read" {
		wc.Stdout = new(bytes.Buffer)
	}
	if err := wc.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// converse talks five turns, each message made of the answers before it.
func converse(url string, opening int) string {
	messages := []map[string]string{{"role": "user", "content": fmt.Sprintf("opening %d", opening)}}
	for range 5 {
		body, _ := json.Marshal(map[string]any{"model": "m", "max_tokens": 10, "messages": messages})
		res, err := http.Post(url+"/v1/messages", "application/json", bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err = errors.Join(err, statusError(res.StatusCode)); err != nil {
			return fmt.Sprintf("%v: %s", err, b)
		}
		messages = append(messages, map[string]string{"role": "assistant", "content": string(b)},
			map[string]string{"role": "user", "content": "and then, after " + string(b) + "?"})
	}
	return messages[len(messages)-1]["content"]
}

func statusError(code int) error {
	if code == http.StatusOK {
		return nil
	}
	return fmt.Errorf("status %d", code)
}

// playForever fetches and writes until it is killed.
func playForever(args []string) int {
	for i := 0; ; i++ {
		b, err := get(fmt.Sprintf("%s/%d", args[0], i))
		if err != nil {
			return fail(err)
		}
		if err := os.WriteFile(fmt.Sprintf("f%d", i%50), b, 0o644); err != nil {
			return fail(err)
		}
		fmt.Println(i, len(b))
	}
}
