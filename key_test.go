package idem_test

import (
	"strings"
	"testing"
	"unicode/utf8"

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

func TestReason(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *draw.T) {
		text := draw.OneOf(draw.StringN(0, 1200, -1), draw.Map(draw.SliceOfN(draw.Byte(), 0, 1200), func(b []byte) string { return string(b) })).Draw(t, "text")
		reason := idem.Reason(text)
		switch {
		case len(reason) > 1000, strings.Contains(reason, "\x00"), !utf8.ValidString(reason), idem.Reason(reason) != reason:
			t.Fatalf("%q of %q", reason, text)
		case utf8.ValidString(text) && len(reason) < min(len(text), 997):
			t.Fatalf("%d of %d bytes", len(reason), len(text))
		}
	})
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
		if sent, asked := outbound(k), outbound(back); sent != asked {
			t.Fatalf("the gateway got %q and is asked about %q", sent, asked)
		}
	})
}

func outbound(k idem.Key) string { return idem.Claim{Request: idem.Request{Key: k}}.OutboundKey() }
