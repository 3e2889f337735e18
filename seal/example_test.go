package seal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/seal"
)

// A recording is sealed, and one record of it proved to somebody who has the public key and nothing else.
func Example() {
	dir, err := os.MkdirTemp("", "*.rec")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	header, record := `{"type":"header","version":1,"harn_version":"mytool 1"}`+"\n", `{"type":"record","seq":0,"kind":{"kind":"note"}}`+"\n"
	if err := os.WriteFile(filepath.Join(dir, "run.tape"), []byte(header+record), 0o600); err != nil {
		panic(err)
	}
	ctx := context.Background()
	key, err := seal.NewKey("example.com/recorder")
	if err != nil {
		panic(err)
	}
	if _, err := seal.Seal(ctx, dir, &seal.Options{Key: key, ID: "20261122-0126"}); err != nil {
		panic(err)
	}
	proof, err := seal.Prove(ctx, dir, &seal.ProveOptions{Seq: 0})
	if err != nil {
		panic(err)
	}

	auditor := []seal.PublicKey{key.Public()}
	proven, err := seal.VerifyProof(proof.Encode(), &seal.ProofOptions{Keys: auditor})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s sealed in %s: %s", proven.Signer.Name(), proven.ID, proven.Data)

	if err := os.WriteFile(filepath.Join(dir, "run.tape"), []byte(header), 0o600); err != nil {
		panic(err)
	}
	result, err := seal.Verify(ctx, dir, &seal.VerifyOptions{Keys: auditor})
	if err != nil {
		panic(err)
	}
	for _, p := range result.Problems {
		fmt.Println(p.Code, p.Error())
	}
	// Output:
	// example.com/recorder sealed in 20261122-0126: {"type":"record","seq":0,"kind":{"kind":"note"}}
	// cut run.tape:2: it ends here, 1 line short of 2
}
