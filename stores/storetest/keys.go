package storetest

import (
	"fmt"
	"strings"

	"github.com/idemkit/idem"
)

func keyChecks() []check {
	return []check{
		{"keys/any bytes in any part", hostileParts},
		{"keys/every pair stays two", distinctKeys},
		{"keys/hostile subjects and request ids", hostileSubjects},
	}
}

// hostile strings have gone wrong somewhere: in hash tags, separators, text columns, index entries, patterns, digests.
func hostile() []string {
	return []string{
		"a", "A", "{a}", "}{", "a:b", "a:", ":a", "~", "~a", "~a~b", "a~b", "a\x00", "a\x00b", "\x00", "\xff\xfe", "a\xc3",
		" a", "a ", "a\n", "a\r\n", "é", "e\u0301", "订单", "🧾", "%", "_", "a%", "a_b", "*", "?", "[a]", "'", "''", `"`, `\`, "$1", "NULL", "0", "00",
		"../a", strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("x", 4096), strings.Repeat("x", 4095) + "y", strings.Repeat("é", 2048),
	}
}

func hostileParts(f fixture) {
	for part, set := range map[string]func(*idem.Key, string){
		"tenant": func(k *idem.Key, s string) { k.Tenant = s },
		"type":   func(k *idem.Key, s string) { k.Type = s },
		"scope":  func(k *idem.Key, s string) { k.Scope = s },
		"id":     func(k *idem.Key, s string) { k.ID = s },
	} {
		var claims []idem.Claim
		for i, value := range hostile() {
			q := request("for " + part)
			q.RequestID = fmt.Sprintf("request-%s-%d", part, i)
			set(&q.Key, value)
			claims = append(claims, f.won(q, 1))
		}
		f.finishAll(part, claims)
	}
}

// finishAll completes each claim with a body of its own, and finds each again under its own key.
func (f fixture) finishAll(what string, claims []idem.Claim) {
	f.Helper()
	if lost, err := f.Store.Extend(f.Context(), claims); err != nil || len(lost) != 0 {
		f.Fatalf("%s: Extend: lost %v, %v", what, lost, err)
	}
	for i, c := range claims {
		f.complete(c, idem.Result{Body: fmt.Append(nil, what, i), Kept: true})
	}
	for i, c := range claims {
		record := f.lookup(c.Request)
		if record.Key != c.Key || record.Subject != c.Subject || record.RequestID != c.RequestID {
			f.Errorf("%s: asked for %+v, %q, %q; got %+v, %q, %q", what, c.Key, c.Subject, c.RequestID, record.Key, record.Subject, record.RequestID)
		}
		f.replays(again(c.Request), idem.Result{Body: fmt.Append(nil, what, i), Kept: true})
	}
}

func distinctKeys(f fixture) {
	keys := []idem.Key{
		{Type: "t", Scope: "a", ID: "bc"}, {Type: "t", Scope: "ab", ID: "c"}, {Type: "t", ID: "abc"}, {Type: "t", Scope: "abc", ID: "t"},
		{Type: "t", ID: "~a~bc"}, {Type: "t", ID: "~ab~c"}, {Type: "t", Scope: "~a", ID: "bc"}, {Type: "t", Scope: "a~", ID: "bc"},
		{Type: "t", Scope: "a", ID: "~bc"}, {Type: "t", Scope: "a:b", ID: "c"}, {Type: "t", Scope: "a", ID: "b:c"},
		{Tenant: "t", Type: "a", ID: "bc"}, {Tenant: "ta", Type: "b", ID: "c"}, {Type: "ta", ID: "bc"}, {Tenant: "a", Type: "t", ID: "bc"},
		{Tenant: "a", Type: "t", Scope: "a", ID: "bc"}, {Type: "t", ID: idem.K("t", "abc").Digest()},
	}
	var claims []idem.Claim
	for i, k := range keys {
		q := request("")
		q.Key, q.RequestID = k, fmt.Sprint("request-", i)
		claims = append(claims, f.won(q, 1))
	}
	f.finishAll("distinct", claims)
}

func hostileSubjects(f fixture) {
	var claims []idem.Claim
	for i, value := range hostile() {
		subject, requestID := request(fmt.Sprint("subject", i)), request(fmt.Sprint("request", i))
		subject.Subject, requestID.RequestID = value, value
		requestID.Subject = "bob"
		claims = append(claims, f.won(subject, 1), f.won(requestID, 1))
		f.outcome(idem.Foreign, stranger(subject))
	}
	f.finishAll("subjects", claims)
}
