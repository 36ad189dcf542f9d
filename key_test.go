package idem_test

import (
	"strings"
	"testing"

	draw "pgregory.net/rapid"

	"github.com/idemkit/idem"
)

func TestColumn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 513)
	for name, c := range map[string]struct {
		in    string
		stays bool
	}{
		"plain":           {"R-2026/7 ä 单", true},
		"empty":           {"", true},
		"at the limit":    {long[:512], true},
		"over the limit":  {long, false},
		"NUL":             {"a\x00b", false},
		"line break":      {"a\nb", false},
		"broken UTF-8":    {"a\xff", false},
		"the mark itself": {"a~b", false},
		"a replacement":   {idem.Column(long), true},
		"upper-case hex":  {"~" + strings.Repeat("A", 64), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := idem.Column(c.in)
			if (got == c.in) != c.stays || idem.Column(got) != got || len(got) > 512 {
				t.Errorf("Column(%q) is %q", c.in, got)
			}
		})
	}
}

// What a ledger reads back claims the record that it read.
func TestKeyOfClaimsTheSameRecord(t *testing.T) {
	t.Parallel()
	part := draw.OneOf(draw.String(), draw.StringMatching(`~?[a-z~]{0,5}`), draw.Just(strings.Repeat("x", 600)), draw.Just("a\x00"))
	draw.Check(t, func(t *draw.T) {
		k := idem.Key{Tenant: part.Draw(t, "tenant"), Type: part.Draw(t, "type"), Scope: part.Draw(t, "scope"), ID: part.Draw(t, "id")}
		tenant, businessType, column := idem.Column(k.Tenant), idem.Column(k.Type), k.Column()
		back := idem.KeyOf(tenant, businessType, column)
		if back.Column() != column || idem.Column(back.Tenant) != tenant || idem.Column(back.Type) != businessType {
			t.Fatalf("%q reads back as %+v, which is %q", column, back, back.Column())
		}
	})
}
