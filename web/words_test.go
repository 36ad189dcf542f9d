package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// What people would be shown half of, or nothing, is refused when the program starts.
func TestNewRefusesWords(t *testing.T) {
	t.Parallel()
	labels := func(language, retryAfter string) func(*web.Config) {
		return func(c *web.Config) { c.Labels = map[string]templates.Texts{language: {RetryAfter: retryAfter}} }
	}
	message := func(m web.Message) func(*web.Config) {
		return func(c *web.Config) { c.Messages = map[string]web.Messages{"de": {web.TokenMissing: m}} }
	}
	header := func(name string) func(*web.Config) { return func(c *web.Config) { c.RequestIDHeader = name } }
	for name, c := range map[string]struct {
		set  func(*web.Config)
		says string // empty: accepted
	}{
		"empty labels are English":   {set: labels("de", "")},
		"one %d":                     {set: labels("de", "Noch %d s")},
		"a per cent sign":            {set: labels("de", "Noch %d s (100 %%)")},
		"no %d":                      {set: labels("de", "Noch etwas"), says: `Labels["de"]: RetryAfter`},
		"two %d":                     {set: labels("de", "%d %d"), says: `Labels["de"]: RetryAfter`},
		"another verb":               {set: labels("de", "%d %s"), says: `Labels["de"]: RetryAfter`},
		"a string's verb":            {set: labels("de", "%s"), says: `Labels["de"]: RetryAfter`},
		"only a per cent sign":       {set: labels("de", "%%d"), says: `Labels["de"]: RetryAfter`},
		"labels of no language":      {set: labels("not a tag", ""), says: `Labels: "not a tag"`},
		"whole message":              {set: message(web.Message{Title: "Kein Token", Detail: "Neu laden."})},
		"message without title":      {set: message(web.Message{Detail: "Neu laden."}), says: `Messages["de"]["token_missing"]`},
		"message without detail":     {set: message(web.Message{Title: "Kein Token"}), says: `Messages["de"]["token_missing"]`},
		"another header":             {set: header("X-Request-Id")},
		"header with a blank":        {set: header("Request Id"), says: `RequestIDHeader "Request Id"`},
		"header with a colon":        {set: header("Request-Id:"), says: "RequestIDHeader"},
		"header with a line break":   {set: header("A\r\nB"), says: "RequestIDHeader"},
		"header that is not English": {set: header("Größe"), says: "RequestIDHeader"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := web.Config{Store: memstore.New(memstore.Options{})}
			c.set(&config)
			_, err := web.New(config)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestOptionsThatPanic(t *testing.T) {
	t.Parallel()
	key := web.JSONKey("refundNo")
	for name, c := range map[string]struct {
		route func(g *web.Guard)
		says  string // empty: accepted
	}{
		"a code's words":              {route: func(g *web.Guard) { g.Token("a", web.Say(web.KeyTaken, web.Message{Title: "No"})) }},
		"words of no code":            {route: func(g *web.Guard) { g.Token("a", web.Say("key_taken_", web.Message{})) }, says: "key_taken_"},
		"JSON key without a path":     {route: func(g *web.Guard) { g.Key("a", web.JSONKey()) }, says: "JSONKey"},
		"JSON key, an empty path":     {route: func(g *web.Guard) { g.Key("a", web.JSONKey("no", "")) }, says: "JSONKey"},
		"form key without a field":    {route: func(g *web.Guard) { g.Key("a", web.FormKey()) }, says: "FormKey"},
		"path key without a name":     {route: func(g *web.Guard) { g.Key("a", web.PathKey()) }, says: "PathKey"},
		"header key without a name":   {route: func(g *web.Guard) { g.Key("a", web.HeaderKey("")) }, says: "HeaderKey"},
		"header key, no header":       {route: func(g *web.Guard) { g.Key("a", web.HeaderKey("Idempotency Key")) }, says: "HeaderKey"},
		"own key, no function":        {route: func(g *web.Guard) { g.Key("a", web.KeyFrom(nil)) }, says: "KeyFrom"},
		"join of nothing":             {route: func(g *web.Guard) { g.Key("a", web.Join()) }, says: "Join"},
		"join with one that is none":  {route: func(g *web.Guard) { g.Lock("a", web.Join(key, web.KeyFunc{})) }, says: "Join"},
		"business key of a token":     {route: func(g *web.Guard) { g.Token("a", web.BusinessKey(key)) }},
		"business key beside a key":   {route: func(g *web.Guard) { g.Key("a", key, web.BusinessKey(key)) }, says: "BusinessKey"},
		"business key that is none":   {route: func(g *web.Guard) { g.Token("a", web.BusinessKey(web.KeyFunc{})) }, says: "BusinessKey"},
		"resolver that is none":       {route: func(g *web.Guard) { g.Token("a", web.Resolver(nil)) }, says: "Resolver"},
		"resolver of a nil variable":  {route: func(g *web.Guard) { var ask idem.Resolver; g.Token("a", web.Resolver(ask)) }, says: "Resolver"},
		"resolver that answers":       {route: func(g *web.Guard) { g.Token("a", web.Resolver(never)) }},
		"a path with an empty member": {route: func(g *web.Guard) { g.Key("a", web.PathKey("")) }, says: "PathKey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			defer func() {
				with := recover()
				if (with == nil) != (c.says == "") || with != nil && !strings.Contains(fmt.Sprint(with), c.says) {
					t.Errorf("panicked with %v, want %q", with, c.says)
				}
			}()
			c.route(f.guard)
		})
	}
}

func never(context.Context, idem.Claim) (idem.Ending, error) {
	return idem.Ending{State: idem.Failed}, nil
}

// A page in two languages says which part is in which, for whoever reads it aloud.
func TestPageOfTwoLanguages(t *testing.T) {
	t.Parallel()
	german := web.Messages{web.TokenMissing: {Title: "Kein Token", Detail: "Neu laden."}}
	for name, c := range map[string]struct {
		labels  map[string]templates.Texts
		code    string
		content string // Content-Language
		page    []string
	}{
		"text and labels": {
			labels: map[string]templates.Texts{"de": {Status: "Stand"}}, code: web.TokenMissing, content: "de",
			page: []string{`<html lang="de">`, `lang="de" data-code`, `<h1>Kein Token</h1>`, `<dt>Stand</dt>`, `<dt>Code</dt>`},
		},
		"text alone": {
			code: web.TokenMissing, content: "de",
			page: []string{`<html lang="de">`, `lang="en" data-code`, `<h1 lang="de">Kein Token</h1>`, `<p lang="de">Neu laden.</p>`, `<dt>Status</dt>`},
		},
		"labels alone": {
			labels: map[string]templates.Texts{"de": {Status: "Stand"}}, code: web.RateLimited, content: "en",
			page: []string{`<html lang="en">`, `lang="en" data-code`, `<h1>Too many requests</h1>`, `<dt>Status</dt>`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *web.Config) {
				config.Messages, config.Labels = map[string]web.Messages{"de": german}, c.labels
			})
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Accept", "text/html")
			r.Header.Set("Accept-Language", "de")
			rec := httptest.NewRecorder()
			f.guard.Refuse(rec, r, c.code, 0)
			if got := rec.Header().Get("Content-Language"); got != c.content {
				t.Errorf("Content-Language %s", got)
			}
			for _, part := range c.page {
				if !strings.Contains(rec.Body.String(), part) {
					t.Errorf("no %s in\n%s", part, rec.Body)
				}
			}
		})
	}
}
