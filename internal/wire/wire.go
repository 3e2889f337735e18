// Package wire writes Go values for this process or another one of the same executable, and reads them there: exported fields in their order, numbers as
// varints, texts and lists behind their lengths. Neither names nor types are written, so nothing has to be set up to read one, and both
// sides must be of one build. Texts need not be UTF-8.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// Append appends what v, a pointer, leads to: structs, pointers to what may be nil, slices, maps, strings, integers and booleans. It panics where a type holds anything else.
func Append(b []byte, v any) []byte { return appendValue(b, reflect.ValueOf(v).Elem()) }

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	case reflect.Map:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for key, value := range v.Seq2() {
			b = appendValue(appendValue(b, key), value)
		}
		return b
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				b = appendValue(b, v.Field(i))
			}
		}
		return b
	}
	panic(fmt.Sprintf("wire: a %s cannot be written", v.Type()))
}

var errShort = errors.New("wire: it ends within a value")

// Decode reads into the value that v points to what Append wrote. The error says that the bytes are of no such value.
func Decode(b []byte, v any) error {
	r := reader{b}
	if err := r.value(reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	if len(r.rest) > 0 {
		return fmt.Errorf("wire: %d bytes behind the value", len(r.rest))
	}
	return nil
}

type reader struct{ rest []byte }

func (r *reader) uint() (uint64, error) {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		return 0, errShort
	}
	r.rest = r.rest[size:]
	return n, nil
}

// length is that of what follows, of which each part takes a byte at least.
func (r *reader) length() (int, error) {
	n, err := r.uint()
	if err == nil && n > uint64(len(r.rest)) {
		err = errShort
	}
	return int(n), err
}

func (r *reader) bytes() ([]byte, error) {
	n, err := r.length()
	if err != nil {
		return nil, err
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b, nil
}

func (r *reader) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, err := r.uint()
		if v.Kind() == reflect.Bool {
			v.SetBool(n == 1)
		} else {
			v.SetUint(n)
		}
		return err
	case reflect.Int, reflect.Int64:
		n, size := binary.Varint(r.rest)
		if size <= 0 {
			return errShort
		}
		r.rest = r.rest[size:]
		v.SetInt(n)
		return nil
	case reflect.String:
		b, err := r.bytes()
		v.SetString(string(b))
		return err
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.entries(v)
	case reflect.Pointer:
		is, err := r.uint()
		if err != nil || is == 0 {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.value(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := r.value(v.Field(i)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	panic(fmt.Sprintf("wire: a %s cannot be read", v.Type()))
}

func (r *reader) slice(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b, err := r.bytes()
		if len(b) > 0 {
			v.SetBytes(b)
		}
		return err
	}
	n, err := r.length()
	if err != nil || n == 0 {
		return err
	}
	list := reflect.MakeSlice(v.Type(), 0, 0) // grows as its elements come: a length may lie
	for range n {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := r.value(e); err != nil {
			return err
		}
		list = reflect.Append(list, e)
	}
	v.Set(list)
	return nil
}

func (r *reader) entries(v reflect.Value) error {
	n, err := r.length()
	if err != nil || n == 0 {
		return err
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := errors.Join(r.value(key), r.value(value)); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	return nil
}
