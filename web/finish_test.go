package web_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// Every call about a claim can be repeated, and none goes through for a claim that is over.
func TestClaimsOfServices(t *testing.T) {
	t.Parallel()
	const lost = web.ClaimLost
	for name, c := range map[string]struct {
		calls []string
		want  []string // the code of each; empty: 200
	}{
		"complete, again":           {calls: []string{"complete", "complete"}, want: []string{"", ""}},
		"fail, again":               {calls: []string{"fail", "fail"}, want: []string{"", ""}},
		"extend, again, complete":   {calls: []string{"extend", "extend", "complete"}, want: []string{"", "", ""}},
		"complete, extend":          {calls: []string{"complete", "extend"}, want: []string{"", lost}},
		"complete, fail":            {calls: []string{"complete", "fail"}, want: []string{"", lost}},
		"fail, complete, extend":    {calls: []string{"fail", "complete", "extend"}, want: []string{"", lost, lost}},
		"late, but nobody took it":  {calls: []string{"lapse", "extend", "lapse", "complete"}, want: []string{"", "", "", ""}},
		"taken over":                {calls: []string{"lapse", "takeover", "extend", "complete", "fail"}, want: []string{"", "", lost, lost, lost}},
		"taken over, after failure": {calls: []string{"fail", "takeover", "extend", "complete", "fail"}, want: []string{"", "", lost, lost, lost}},
		"taken over and done":       {calls: []string{"lapse", "takeover", "their complete", "complete", "fail"}, want: []string{"", "", "", lost, lost}},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), withServices)
				in := f.grant()
				claim, theirs := accepts(t, f.service("consume", in), 1), ""
				for i, call := range c.calls {
					members := map[string]any{"claim": claim}
					switch call {
					case "lapse":
						f.end("lapse", claim, in["token"].(string))
						continue
					case "takeover":
						theirs = accepts(t, f.service("consume", in), 2)
						continue
					case "their complete":
						call, members = "complete", map[string]any{"claim": theirs}
					}
					if call == "complete" {
						members["status"] = 201
					}
					rec := f.service(call, members)
					if c.want[i] != "" {
						refused(t, rec, allCodes()[c.want[i]], c.want[i])
						continue
					}
					if ok(t, rec); call != "extend" && strings.TrimSpace(rec.Body.String()) != "{}" || rec.Header().Get(requestID) == "" {
						t.Errorf("%s: %s %v", call, rec.Body, rec.Header())
					}
					f.settle()
				}
			})
		}
	}
}

// A lease runs out unless it is extended, and says when.
func TestLeaseOfServices(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				f := newFixture(t, only(stores), withServices, func(c *web.Config) { c.Lease = 2 * time.Second })
				in := f.grant()
				rec := f.service("consume", in)
				claim := accepts(t, rec, 1)
				if until := ok(t, rec).LeaseUntil; !until.Equal(time.Now().Add(2*time.Second)) || until.Location() != time.UTC {
					t.Errorf("lease until %v", until)
				}
				for range 3 {
					pass(1900 * time.Millisecond)
					begun := time.Now()
					if got := ok(t, f.service("extend", map[string]any{"claim": claim})); !got.LeaseUntil.Equal(time.Now().Add(2 * time.Second)) {
						t.Errorf("lease until %v", got.LeaseUntil)
					}
					refused(t, f.service("consume", in), 409, web.InProgress)
					if waited := time.Since(begun); waited != 0 {
						t.Errorf("waited %v", waited)
					}
				}
				pass(2 * time.Second)
				accepts(t, f.service("consume", in), 2)
				refused(t, f.service("complete", map[string]any{"claim": claim, "status": 200}), 409, web.ClaimLost)
			})
		})
	}
}

func TestClaimStrings(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withServices)
	in := f.grant()
	good := accepts(t, f.service("consume", in), 1)
	word, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	box := func(key string) cipher.AEAD {
		digest := sha256.Sum256([]byte(key))
		block, err := aes.NewCipher(digest[:])
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	content, err := box(serviceKey).Open(nil, nil, word, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	seal := func(text, key string) string {
		return base64.RawURLEncoding.EncodeToString(box(key).Seal(nil, nil, []byte(text), nil))
	}
	change := func(old, replacement string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return seal(strings.Replace(text, old, replacement, 1), serviceKey)
	}
	alone := newFixture(t, withServices, withoutLedger)
	for name, c := range map[string]struct {
		claim any
		code  string
	}{
		"none":                   {claim: nil, code: web.BadRequest},
		"empty":                  {claim: "", code: web.BadRequest},
		"a number":               {claim: 7, code: web.BadRequest},
		"an object":              {claim: map[string]any{}, code: web.BadRequest},
		"garbage":                {claim: "garbage!", code: web.BadRequest},
		"padded":                 {claim: good + "==", code: web.BadRequest},
		"cut off":                {claim: good[:len(good)-5], code: web.BadRequest},
		"a newline inside":       {claim: good[:8] + "\n" + good[8:], code: web.BadRequest},
		"no seal":                {claim: base64.RawURLEncoding.EncodeToString([]byte(text)), code: web.BadRequest},
		"another's seal":         {claim: seal(text, "another-service-key"), code: web.BadRequest},
		"changed":                {claim: base64.RawURLEncoding.EncodeToString(append(word[:len(word)-1:len(word)-1], ' ')), code: web.BadRequest},
		"sealed, not JSON":       {claim: seal("garbage", serviceKey), code: web.BadRequest},
		"sealed, empty":          {claim: seal("", serviceKey), code: web.BadRequest},
		"a newer format":         {claim: change(`"format":1`, `"format":2`), code: web.StoreUnavailable},
		"a newer format, more":   {claim: change(`"format":1`, `"format":2,"more":true`), code: web.StoreUnavailable},
		"another ledger":         {claim: change(`"Ledger":"memory"`, `"Ledger":"other"`), code: web.BadRequest},
		"another tenant":         {claim: change(`"Tenant":""`, `"Tenant":"2"`), code: web.BadRequest},
		"another attempt":        {claim: change(`"Attempt":1`, `"Attempt":2`), code: web.ClaimLost},
		"another owner":          {claim: change(`"Owner":"`, `"Owner":"X`), code: web.ClaimLost},
		"a claim of the request": {claim: in["token"], code: web.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			for call, members := range map[string]map[string]any{"extend": {}, "complete": {"status": 200}, "fail": {}} {
				if c.claim != nil {
					members["claim"] = c.claim
				}
				if p := refused(t, f.service(call, members), allCodes()[c.code], c.code); strings.Contains(p.Detail, "json") {
					t.Errorf("detail %q", p.Detail)
				}
			}
		})
	}
	refused(t, alone.service("complete", map[string]any{"claim": good, "status": 200}), 400, web.BadRequest)
	ok(t, f.service("extend", map[string]any{"claim": seal(text, "the-older-key")}))
	ok(t, f.service("complete", map[string]any{"claim": good, "status": 200})) // none of them touched it
}

func TestResultsOfServices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		member  string
		value   any
		more    map[string]any
		says    string // of a 400
		status  int
		body    string
		headers [][2]string
	}{
		"200 alone":             {member: "status", value: 200, status: 200},
		"399":                   {member: "status", value: 399, status: 399},
		"no status":             {says: "status"},
		"199":                   {member: "status", value: 199, says: "status"},
		"400":                   {member: "status", value: 400, says: "fail"},
		"500":                   {member: "status", value: 500, says: "fail"},
		"a fraction":            {member: "status", value: 200.5, says: "status"},
		"a string":              {member: "status", value: "200", says: "status"},
		"body":                  {member: "body", value: "bWFkZQ==", status: 200, body: "bWFkZQ=="},
		"bytes":                 {member: "body", value: "AP+A", status: 200, body: "AP+A"},
		"not base64":            {member: "body", value: "made!", says: "base64"},
		"no padding":            {member: "body", value: "bWFkZQ", says: "base64"},
		"URL alphabet":          {member: "body", value: "AP-A", says: "base64"},
		"a newline":             {member: "body", value: "bWFk\nZQ==", says: "base64"},
		"trailing bits":         {member: "body", value: "bWFkZR==", says: "base64"},
		"body an object":        {member: "body", value: map[string]any{}, says: "body"},
		"of 204 no body":        {member: "body", value: "bWFkZQ==", more: map[string]any{"status": 204}, status: 204},
		"of a redirect no body": {member: "body", value: "bWFkZQ==", more: map[string]any{"status": 303}, status: 303},
		"headers": {member: "headers", value: [][]string{{"Location", "/a"}, {"X-Note", "é\t1"}, {"x-note", ""}}, status: 200,
			headers: [][2]string{{"Location", "/a"}, {"X-Note", "é\t1"}, {"x-note", ""}}},
		"headers not repeated": {member: "headers", value: [][]string{{"connection", "close"}, {"Date", "x"}, {"set-cookie", "a=b"}, {"Content-Length", "7"}, {"Etag", `"1"`}}, status: 200,
			headers: [][2]string{{"Etag", `"1"`}}},
		"no headers":           {member: "headers", value: [][]string{}, status: 200},
		"a header of one":      {member: "headers", value: [][]string{{"A"}}, says: "headers"},
		"a header of three":    {member: "headers", value: [][]string{{"A", "b", "c"}}, says: "headers"},
		"a header without":     {member: "headers", value: []any{nil}, says: "headers"},
		"a value null":         {member: "headers", value: []any{[]any{"A", nil}}, says: "headers"},
		"an empty name":        {member: "headers", value: [][]string{{"", "b"}}, says: "headers"},
		"a name with a colon":  {member: "headers", value: [][]string{{"A:", "b"}}, says: "headers"},
		"a value with a line":  {member: "headers", value: [][]string{{"A", "b\r\nC: d"}}, says: "headers"},
		"a value with NUL":     {member: "headers", value: [][]string{{"A", "b\x00"}}, says: "headers"},
		"headers as an object": {member: "headers", value: map[string]string{"A": "b"}, says: "headers"},
		"unknown member":       {member: "reason", value: "x", says: "known members"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, withServices)
			in := f.grant()
			members := map[string]any{"claim": accepts(t, f.service("consume", in), 1)}
			if c.member != "" {
				members["status"] = 200
				members[c.member] = c.value
			}
			for member, value := range c.more {
				members[member] = value
			}
			rec := f.service("complete", members)
			if c.says != "" {
				if p := refused(t, rec, 400, web.BadRequest); !strings.Contains(p.Detail, c.says) {
					t.Errorf("detail %q, want %q", p.Detail, c.says)
				}
				refused(t, f.service("consume", in), 409, web.InProgress) // the claim stands
				return
			}
			ok(t, rec)
			f.settle()
			got := ok(t, f.service("consume", in)).Response
			if got.Status != c.status || *got.Body != c.body || len(got.Headers) != len(c.headers) {
				t.Fatalf("replayed %+v %q", got, *got.Body)
			}
			for i, line := range c.headers {
				if got.Headers[i] != line {
					t.Errorf("headers %q", got.Headers)
				}
			}
		})
	}
}
