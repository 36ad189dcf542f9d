package sqlitestore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
)

func TestHeaderKeepsEveryByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]string {
			return [2]string{text.Draw(t, "name"), text.Draw(t, "value")}
		}), 0, 5).Draw(t, "lines")
		column, err := encodeHeader(lines)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeHeader(column)
		if err != nil || !slices.Equal(got, lines) {
			t.Fatalf("kept %q as %s, read %q, %v", lines, column, got, err)
		}
	})
}

func TestHeaderColumn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header [][2]string
		column string
	}{
		"none":     {nil, `[]`},
		"readable": {[][2]string{{"Location", "/orders/1"}}, `[["Location","/orders/1"]]`},
		"binary":   {[][2]string{{"A", "\xff"}}, `base64:[["QQ==","/w=="]]`},
	} {
		if got, err := encodeHeader(tt.header); err != nil || got != tt.column {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.column)
		}
	}
	for name, column := range map[string]string{"not JSON": "x", "not base64": `base64:[["%","%"]]`, "another shape": `{"a":1}`} {
		if header, err := decodeHeader(column); err == nil {
			t.Errorf("%s: read %q", name, header)
		}
	}
}

func TestKeyOf(t *testing.T) {
	t.Parallel()
	asked := idem.Key{Tenant: "shop", Type: "refund", ID: "R-1"}
	scoped := idem.Key{Tenant: "shop", Type: "refund", Scope: "alice", ID: "R-2"}
	digest := idem.Column("~")
	for name, tt := range map[string]struct {
		column string
		want   idem.Key
	}{
		"the one asked for": {asked.Column(), asked},
		"plain":             {"R-2", idem.Key{Tenant: "shop", Type: "refund", ID: "R-2"}},
		"scoped":            {scoped.Column(), scoped},
		"digest":            {digest, idem.Key{Tenant: "shop", Type: "refund", ID: digest}},
		"digest in a scope": {"~alice" + "~" + digest, idem.Key{Tenant: "shop", Type: "refund", Scope: "alice", ID: digest}},
	} {
		if got := keyOf(tt.column, asked); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
