package web

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/idemkit/idem/tokens"
)

// caller is whose request it is, as far as it is known.
type caller struct {
	tenant  string
	subject string // digest; empty: nobody
}

// browserSubject keeps a browser's cookie from ever being read as the id of somebody who is logged in: a cookie is the client's to set.
const browserSubject = "\x00browser\x00"

// cookieBytes are 128 random bits.
const cookieBytes = 16

func (g *Guard) tenant(r *http.Request) string {
	if g.config.Tenant == nil {
		return ""
	}
	return g.config.Tenant(r)
}

// caller of a request: who is logged in, otherwise the browser.
func (g *Guard) caller(r *http.Request) caller {
	c := caller{tenant: g.tenant(r)}
	if id := g.loggedIn(r); id != "" {
		c.subject = tokens.SubjectDigest(c.tenant, id)
	} else if browser := g.browser(r); browser != "" {
		c.subject = g.browserDigest(c.tenant, browser)
	}
	return c
}

// keyCaller is the caller of a key-guarded route: a cookie stands for somebody only where the application has no log-ins.
func (g *Guard) keyCaller(r *http.Request) caller {
	if g.config.Subject == nil {
		return g.caller(r)
	}
	c := caller{tenant: g.tenant(r)}
	if id := g.loggedIn(r); id != "" {
		c.subject = tokens.SubjectDigest(c.tenant, id)
	}
	return c
}

func (g *Guard) loggedIn(r *http.Request) string {
	if g.config.Subject == nil {
		return ""
	}
	return g.config.Subject(r)
}

func (g *Guard) browserDigest(tenant, browser string) string {
	if g.config.Subject != nil {
		browser = browserSubject + browser
	}
	return tokens.SubjectDigest(tenant, browser)
}

func (g *Guard) cookieName(r *http.Request) string {
	if g.secure(r) {
		return "__Host-idem"
	}
	return "idem"
}

func (g *Guard) secure(r *http.Request) bool { return g.config.TLS || r.TLS != nil }

// browser is the value of the subject cookie; empty where there is none, or one that we did not make.
func (g *Guard) browser(r *http.Request) string {
	cookie, err := r.Cookie(g.cookieName(r))
	if err != nil {
		return ""
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cookie.Value)
	if err != nil || len(raw) != cookieBytes {
		return ""
	}
	return cookie.Value
}

// introduce returns the caller, and gives a browser that nobody knows a cookie. The header must not be written yet.
func (g *Guard) introduce(w http.ResponseWriter, r *http.Request) caller {
	c := g.caller(r)
	if c.subject != "" {
		return c
	}
	random := make([]byte, cookieBytes)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	value := base64.RawURLEncoding.EncodeToString(random)
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(r), Value: value, Path: "/", HttpOnly: true, Secure: g.secure(r), SameSite: http.SameSiteLaxMode,
		MaxAge: int((g.remembered() + time.Second - 1) / time.Second),
	})
	c.subject = g.browserDigest(c.tenant, value)
	return c
}

// outlive has the cookie live as long as a route keeps what was done under it.
func (g *Guard) outlive(retention time.Duration) {
	for {
		longest := g.longest.Load()
		if int64(retention) <= longest || g.longest.CompareAndSwap(longest, int64(retention)) {
			return
		}
	}
}

// remembered is how long a browser must be known again.
func (g *Guard) remembered() time.Duration {
	return max(g.config.Retention, time.Duration(g.longest.Load()))
}
