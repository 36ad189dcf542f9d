package idemtest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
)

// Authorize returns a copy of the request with a fresh token for the action in its header, as the browser client sends it. The token is bound to the
// request's subject, as the guard's configuration tells it: set up the log-in first. A request of nobody gets the subject cookie.
// The copy has the body, and can be sent again by way of Again.
func (g *Guard) Authorize(r *http.Request, action string) *http.Request {
	g.t.Helper()
	return g.AuthorizeAgain(r, action, "")
}

// AuthorizeAgain is Authorize for an intention that a token was given out for before: what the client does when it asks to go on with a request id.
func (g *Guard) AuthorizeAgain(r *http.Request, action, requestID string) *http.Request {
	g.t.Helper()
	authorized := g.copy(r)
	authorized.Header.Set("Idempotent-Token", g.token(authorized, action, requestID))
	return authorized
}

// AuthorizeForm is Authorize with the token in a field, as a form without JavaScript sends it. The body must be urlencoded, or empty.
func (g *Guard) AuthorizeForm(r *http.Request, action string) *http.Request {
	g.t.Helper()
	const urlencoded = "application/x-www-form-urlencoded"
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if mediaType != urlencoded && r.Header.Get("Content-Type") != "" {
		g.t.Fatalf("idemtest: AuthorizeForm: the body is %s, not %s; Authorize puts the token into the header", mediaType, urlencoded)
	}
	authorized := g.copy(r)
	fields := g.body(authorized)
	if len(fields) > 0 && strings.ContainsRune("{[<-", rune(fields[0])) { // JSON, XML, or a multipart boundary
		g.t.Fatalf("idemtest: AuthorizeForm: the body is no urlencoded form: it begins with %q; Authorize puts the token into the header", fields[0])
	}
	text := "idempotent_token=" + url.QueryEscape(g.token(authorized, action, ""))
	if len(fields) > 0 {
		text += "&" + string(fields)
	}
	authorized.Header.Set("Content-Type", urlencoded)
	setBody(authorized, []byte(text))
	return authorized
}

// Again returns the request as it was sent, body and all: a duplicate. The request must come from this package; another one, whose body was
// read and cannot be had again, panics.
func Again(r *http.Request) *http.Request {
	if r.GetBody == nil && r.Body != nil && r.Body != http.NoBody {
		panic("idemtest: Again: the body of this request cannot be sent again; give it a request that Authorize, AuthorizeAgain or AuthorizeForm returned")
	}
	again := r.Clone(r.Context())
	again.Form, again.PostForm, again.MultipartForm = nil, nil, nil
	if r.GetBody != nil {
		again.Body, _ = r.GetBody() // of bytes in memory
	}
	return again
}

// token asks the guard's own token service, as the request's caller.
func (g *Guard) token(r *http.Request, action, requestID string) string {
	g.t.Helper()
	ask := map[string]string{"action": action}
	if requestID != "" {
		ask["requestId"] = requestID
	}
	text, err := json.Marshal(ask)
	if err != nil {
		g.t.Fatalf("idemtest: %v", err)
	}
	call := r.Clone(r.Context())
	call.Method, call.URL = http.MethodPost, &url.URL{Path: "/token"}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} { // it may be what is tested
		call.Header.Del(name)
	}
	setBody(call, text)
	answer := httptest.NewRecorder()
	g.Routes().ServeHTTP(answer, call)
	var issued struct{ Token string }
	if err := json.Unmarshal(answer.Body.Bytes(), &issued); answer.Code != http.StatusCreated || err != nil {
		g.t.Fatalf("idemtest: no token for %q: %d %s", action, answer.Code, answer.Body)
	}
	for _, cookie := range answer.Result().Cookies() {
		r.AddCookie(cookie)
	}
	return issued.Token
}

// copy is the request with its body in memory; the original's body is given back too.
func (g *Guard) copy(r *http.Request) *http.Request {
	g.t.Helper()
	clone := r.Clone(r.Context())
	content := g.body(r)
	setBody(r, content)
	setBody(clone, content)
	return clone
}

func (g *Guard) body(r *http.Request) []byte {
	g.t.Helper()
	if r.Body == nil {
		return nil
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Fatalf("idemtest: the request's body: %v", err)
	}
	return content
}

func setBody(r *http.Request, content []byte) {
	r.ContentLength = int64(len(content))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	r.Body, _ = r.GetBody()
}
