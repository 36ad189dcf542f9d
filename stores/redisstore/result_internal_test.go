package redisstore

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
)

func TestResultComesBackByteForByte(t *testing.T) {
	t.Parallel()
	anything := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
	line := rapid.Custom(func(t *rapid.T) [2]string { return [2]string{anything.Draw(t, "name"), anything.Draw(t, "value")} })
	rapid.Check(t, func(t *rapid.T) {
		r := idem.Result{Header: rapid.SliceOf(line).Draw(t, "header"), Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body")}
		kept := encode(r)
		header, body, err := decode(string(kept))
		if err != nil || !slices.Equal(header, r.Header) || !bytes.Equal(body, r.Body) {
			t.Fatalf("%q, %q, %v", header, body, err)
		}
		whole := len(kept) - len(r.Body)
		if short := rapid.IntRange(0, whole-1).Draw(t, "cut"); !damaged(string(kept[:short])) {
			t.Fatalf("cut to %d of %d bytes it is still read", short, whole)
		}
	})
}

func damaged(kept string) bool {
	_, _, err := decode(kept)
	return err != nil
}

func TestDamagedResults(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]string{
		"empty":                      "",
		"a line that is not there":   "\x01",
		"a length beyond the end":    "\x01\x7fabc",
		"a length beyond any memory": "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
		"more lines than bytes":      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a number without end":       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !damaged(kept) {
				t.Error("it is read")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("\x01\x01a\x01bbody")
	f.Fuzz(func(t *testing.T, kept string) {
		header, body, err := decode(kept)
		if err != nil {
			return
		}
		again, sameBody, err := decode(string(encode(idem.Result{Header: header, Body: body})))
		if err != nil || !slices.Equal(again, header) || !bytes.Equal(sameBody, body) {
			t.Errorf("%q, %q, %v", again, sameBody, err)
		}
	})
}
