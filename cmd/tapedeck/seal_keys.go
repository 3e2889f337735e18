package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// sealKeys are the flags that say whose seal is asked for.
type sealKeys struct {
	keys      []string
	witnesses []string
}

func (o *sealKeys) define(f *pflag.FlagSet) {
	f.StringArrayVar(&o.keys, "key", nil, "`KEY` that may have sealed: a file such as seal.pub, or NAME+ID+BASE64 (repeatable)")
	f.StringArrayVar(&o.witnesses, "witness", nil, "`KEY` of a witness that must have cosigned, given the same way (repeatable)")
}

// read reads the keys that the flags name.
func (o *sealKeys) read() (keys, witnesses []seal.PublicKey, err error) {
	if keys, err = readKeys("--key", o.keys); err != nil {
		return nil, nil, err
	}
	witnesses, err = readKeys("--witness", o.witnesses)
	return keys, witnesses, err
}

// trusted is read with this machine's key where none is named.
func (o *sealKeys) trusted() (keys, witnesses []seal.PublicKey, err error) {
	if keys, witnesses, err = o.read(); err != nil || len(keys) > 0 {
		return keys, witnesses, err
	}
	keys, err = sealing.TrustedKeys("")
	return keys, witnesses, err
}

func readKeys(flag string, list []string) (out []seal.PublicKey, err error) {
	for _, s := range list {
		if _, err := os.Stat(s); err == nil {
			keys, err := seal.ReadPublicKeys(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", flag, err)
			}
			out = append(out, keys...)
			continue
		}
		k, err := seal.ParsePublicKey(s)
		if err != nil {
			return nil, fmt.Errorf("%s %q: there is no such file, and as a key it is %w", flag, s, err)
		}
		out = append(out, k)
	}
	return out, nil
}
