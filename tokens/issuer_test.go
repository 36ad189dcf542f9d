package tokens_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

func TestNew(t *testing.T) {
	t.Parallel()
	a, e, p := hs256(t, "a", 1), edKey(t, "e", 2), edPublic(t, "p", 3)
	for name, c := range map[string]struct {
		config tokens.Config
		says   string // empty: accepted
	}{
		"one key":                {config: tokens.Config{Keys: []tokens.Key{a}}},
		"public key second":      {config: tokens.Config{Keys: []tokens.Key{e, p}}},
		"one millisecond":        {config: tokens.Config{Keys: []tokens.Key{a}, TTL: time.Millisecond}},
		"longest issuer":         {config: tokens.Config{Keys: []tokens.Key{a}, Issuer: strings.Repeat("i", 256)}},
		"no keys":                {config: tokens.Config{}, says: "no keys"},
		"zero key":               {config: tokens.Config{Keys: []tokens.Key{a, {}}}, says: "key 2 is empty"},
		"kid twice":              {config: tokens.Config{Keys: []tokens.Key{a, e, hs256(t, "a", 4)}}, says: "key 3 has the kid of an earlier one"},
		"kid twice, other alg":   {config: tokens.Config{Keys: []tokens.Key{a, edKey(t, "a", 4)}}, says: "key 2 has the kid of an earlier one"},
		"public key first":       {config: tokens.Config{Keys: []tokens.Key{p, a}}, says: "key 1 signs and must not be a public key"},
		"verify-only ring":       {config: tokens.Config{Keys: []tokens.Key{p}}, says: "key 1 signs and must not be a public key"},
		"negative life":          {config: tokens.Config{Keys: []tokens.Key{a}, TTL: -time.Second}, says: "at least 1ms"},
		"life below what counts": {config: tokens.Config{Keys: []tokens.Key{a}, TTL: time.Microsecond}, says: "at least 1ms"},
		"issuer too long":        {config: tokens.Config{Keys: []tokens.Key{a}, Issuer: strings.Repeat("i", 257)}, says: "issuer must be 1 to 256 bytes"},
		"issuer not UTF-8":       {config: tokens.Config{Keys: []tokens.Key{a}, Issuer: "\xff"}, says: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tokens.New(c.config)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}})
	issued, err := i.Issue(tokens.Grant{Action: "default"})
	must(t, issued, err)
	if i.TTL() != 30*time.Minute {
		t.Errorf("life %v", i.TTL())
	}
	if left := time.Until(issued.ExpiresAt); left < 29*time.Minute || left > 31*time.Minute {
		t.Errorf("%v left", left)
	}
	if _, claims := decode(t, issued.Token); claims["iss"] != "idem" {
		t.Errorf("issuer %v", claims["iss"])
	}
}

// The contract lists header fields and claims; whoever reads tokens elsewhere relies on the list being all.
func TestWireForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key tokens.Key
		alg string
	}{
		"HS256": {key: hs256(t, "2026-03.a", 1), alg: "HS256"},
		"EdDSA": {key: edKey(t, "2026-03.a", 1), alg: "EdDSA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := issuer(t, tokens.Config{Keys: []tokens.Key{c.key}, Issuer: "shop", TTL: time.Minute, Now: at(noon())})
			issued, err := i.Issue(order())
			header, claims := decode(t, must(t, issued, err).Token)
			if want := (object{"alg": c.alg, "kid": "2026-03.a"}); !reflect.DeepEqual(header, want) {
				t.Errorf("header %v", header)
			}
			want := object{
				"jti": issued.ID, "rid": "request-0001", "act": "order.create", "sub": tokens.SubjectDigest("", "ann"),
				"iat": float64(noon().Unix()), "exp": float64(noon().Unix() + 60), "iss": "shop",
			}
			if !reflect.DeepEqual(claims, want) {
				t.Errorf("claims %v, want %v", claims, want)
			}
		})
	}
}

func TestAnonymousTokenSaysSo(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}})
	issued, err := i.Issue(tokens.Grant{Action: "order.create"})
	_, claims := decode(t, must(t, issued, err).Token)
	if sub, there := claims["sub"]; !there || sub != "" {
		t.Errorf("sub is %v", sub)
	}
}

func TestExpiryIsRoundedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now, ttl, expires time.Duration // from noon
	}{
		"whole seconds stay":                {now: 0, ttl: 2 * time.Second, expires: 2 * time.Second},
		"1.5 s from .7":                     {now: 700 * time.Millisecond, ttl: 1500 * time.Millisecond, expires: 3 * time.Second},
		"1.5 s from .5 meets a second":      {now: 500 * time.Millisecond, ttl: 1500 * time.Millisecond, expires: 2 * time.Second},
		"a nanosecond too much":             {now: 1, ttl: time.Second, expires: 2 * time.Second},
		"shorter than a second":             {now: 0, ttl: time.Millisecond, expires: time.Second},
		"shorter, over the second's border": {now: 999500 * time.Microsecond, ttl: time.Millisecond, expires: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := []tokens.Key{hs256(t, "a", 1)}
			now := noon().Add(c.now)
			issued, err := issuer(t, tokens.Config{Keys: keys, TTL: c.ttl, Now: at(now)}).Issue(order())
			must(t, issued, err)
			if want := noon().Add(c.expires); !issued.ExpiresAt.Equal(want) || issued.ExpiresAt.Location() != time.UTC {
				t.Errorf("expires %v, want %v", issued.ExpiresAt, want)
			}
			if issued.Life < c.ttl || !now.Add(issued.Life).Equal(issued.ExpiresAt) {
				t.Errorf("life %v", issued.Life)
			}
			for left, expired := range map[time.Duration]bool{1: false, 0: true, -1: true} {
				later := issuer(t, tokens.Config{Keys: keys, Now: at(issued.ExpiresAt.Add(-left))})
				if got, err := later.Verify(issued.Token); err != nil || got.Expired != expired || !got.ExpiresAt.Equal(issued.ExpiresAt) {
					t.Errorf("with %v left: %+v, %v", left, got, err)
				}
			}
		})
	}
}

func TestIssueRefusesGrants(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}})
	for name, c := range map[string]struct {
		grant tokens.Grant
		says  string
	}{
		"no action":           {grant: tokens.Grant{}, says: "action"},
		"action with a slash": {grant: tokens.Grant{Action: "order/create"}, says: "action"},
		"short request id":    {grant: tokens.Grant{Action: "a", RequestID: "short"}, says: "request id"},
		"raw subject":         {grant: tokens.Grant{Action: "a", Subject: "ann@example.com"}, says: "SubjectDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := i.Issue(c.grant)
			if !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			all, err := i.IssueAll([]tokens.Grant{order(), c.grant})
			if !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), "grant 2") || all != nil {
				t.Errorf("of two: %v, %v", all, err)
			}
		})
	}
}

func TestIssueAll(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}})
	grants := append(slices.Repeat([]tokens.Grant{{Action: "order.create"}}, 31), order())
	all, err := i.IssueAll(grants)
	must(t, all, err)
	ids, requests := map[string]bool{}, map[string]bool{}
	for n, issued := range all {
		ids[issued.ID], requests[issued.RequestID] = true, true
		if got, err := i.Verify(issued.Token); err != nil || got.Grant != issued.Grant || got.Action != grants[n].Action {
			t.Errorf("token %d: %+v, %v", n, got, err)
		}
		if !issued.ExpiresAt.Equal(all[0].ExpiresAt) {
			t.Errorf("token %d expires %v", n, issued.ExpiresAt)
		}
	}
	if len(all) != 32 || len(ids) != 32 || len(requests) != 32 || all[31].RequestID != "request-0001" {
		t.Errorf("%d tokens, %d ids, %d request ids", len(all), len(ids), len(requests))
	}
	if none, err := i.IssueAll(nil); err != nil || len(none) != 0 {
		t.Errorf("of none: %v, %v", none, err)
	}
}

func TestRenewedTokenMeetsTheSameRecord(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{Keys: []tokens.Key{hs256(t, "a", 1)}})
	first, err := i.Issue(order())
	must(t, first, err)
	second, err := i.Issue(order())
	must(t, second, err)
	if first.ID == second.ID {
		t.Error("two tokens, one jti")
	}
	claims, err := i.Verify(second.Token)
	must(t, claims, err)
	want := idem.Key{Tenant: "shop", Type: "order.create", Scope: tokens.SubjectDigest("", "ann"), ID: "request-0001"}
	if first.Key("shop") != want || claims.Key("shop") != want {
		t.Errorf("keys %+v and %+v", first.Key("shop"), claims.Key("shop"))
	}
}

func TestLongestTokenIsAccepted(t *testing.T) {
	t.Parallel()
	i := issuer(t, tokens.Config{
		Keys:   []tokens.Key{edKey(t, strings.Repeat("k", 64), 1)},
		Issuer: strings.Repeat("<", 256), // six bytes each in JSON
	})
	issued, err := i.Issue(tokens.Grant{
		Action: strings.Repeat("a", 128), RequestID: strings.Repeat("r", 128), Subject: tokens.SubjectDigest("", "ann"),
	})
	must(t, issued, err)
	if _, err := i.Verify(issued.Token); err != nil {
		t.Errorf("%d bytes: %v", len(issued.Token), err)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	for name, i := range signers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen sync.Map
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for range 20 {
						issued, err := i.Issue(tokens.Grant{Action: "order.create"})
						if err != nil {
							t.Error(err)
							return
						}
						if _, twice := seen.LoadOrStore(issued.ID, true); twice {
							t.Errorf("jti %s twice", issued.ID)
						}
						if got, err := i.Verify(issued.Token); err != nil || got.ID != issued.ID {
							t.Errorf("%+v, %v", got, err)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

func TestRoundTripOfAnyGrant(t *testing.T) {
	t.Parallel()
	all := signers(t)
	rapid.Check(t, func(t *rapid.T) {
		i := all[rapid.SampledFrom([]string{"HS256", "EdDSA"}).Draw(t, "alg")]
		grant := tokens.Grant{
			Action:    rapid.StringMatching(`[A-Za-z0-9._-]{1,128}`).Draw(t, "action"),
			RequestID: rapid.StringMatching(`([A-Za-z0-9._-]{8,128})?`).Draw(t, "request id"),
			Subject:   tokens.SubjectDigest(rapid.String().Draw(t, "tenant"), rapid.String().Draw(t, "subject")),
		}
		issued, err := i.Issue(grant)
		if err != nil {
			t.Fatal(err)
		}
		got, err := i.Verify(issued.Token)
		want := tokens.Claims{
			Grant: issued.Grant, ID: issued.ID, KeyID: got.KeyID, IssuedAt: noon(), ExpiresAt: issued.ExpiresAt,
		}
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
		if grant.RequestID != "" && got.RequestID != grant.RequestID || got.Action != grant.Action || got.Subject != grant.Subject {
			t.Fatalf("asked for %+v, got %+v", grant, got.Grant)
		}
	})
}
