package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// badRequest is a request that is not to run, with a good token. It is nobody's attempt unless the work itself refused it.
type badRequest struct {
	query  string
	body   string
	header []string // besides the token; a Content-Type here replaces ours
	stream bool     // without a Content-Length
	status int
	code   string // empty: the shop's answer
	worked bool   // the work ran, and counts as an attempt
}

func badRequests() map[string]badRequest {
	deep := strings.Repeat("[", 100_000)
	large := `{"item":"` + strings.Repeat("x", 11<<20) + `","quantity":1}`
	return map[string]badRequest{
		"request id too short":        {header: []string{"Idempotent-Request-Id", "short"}, status: 400, code: "request_id_invalid"},
		"request id too long":         {header: []string{"Idempotent-Request-Id", strings.Repeat("a", 129)}, status: 400, code: "request_id_invalid"},
		"request id with a blank":     {header: []string{"Idempotent-Request-Id", "request id 1"}, status: 400, code: "request_id_invalid"},
		"request id with markup":      {header: []string{"Idempotent-Request-Id", "<script>alert(1)"}, status: 400, code: "request_id_invalid"},
		"request id with umlauts":     {header: []string{"Idempotent-Request-Id", "größer-als"}, status: 400, code: "request_id_invalid"},
		"request id of another":       {header: []string{"Idempotent-Request-Id", "another-request-id"}, status: 409, code: "request_id_mismatch"},
		"token in the URL too":        {query: "?idempotent_token=abc", status: 400, code: "token_in_url"},
		"header's name in the URL":    {query: "?Idempotent-Token=", status: 400, code: "token_in_url"},
		"from another origin":         {header: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: "cross_origin"},
		"from an origin that is none": {header: []string{"Origin", "null"}, status: 403, code: "cross_origin"},
		"too large, declared":         {body: large, status: 413, code: "body_too_large"},
		"too large, chunked":          {body: large, stream: true, status: 413, code: "body_too_large"},
		"larger than the shop takes":  {body: large[:2<<20], status: 413, worked: true},
		"a fault that does not exist": {query: "?fail=softly", status: 400},
		"a delay that is none":        {query: "?delay=long", status: 400},
		"a delay of an hour":          {query: "?delay=1h", status: 400},
		"a negative delay":            {query: "?delay=-1s", status: 400},
		"no body":                     {body: " ", status: 400, worked: true},
		"no JSON":                     {body: "item=teapot", status: 400, worked: true},
		"JSON that ends":              {body: `{"item":"teapot","quantity":`, status: 400, worked: true},
		"something behind JSON":       {body: `{"item":"teapot","quantity":1} {}`, status: 400, worked: true},
		"no object":                   {body: `["teapot",1]`, status: 400, worked: true},
		"null":                        {body: `null`, status: 400, worked: true},
		"an unknown member":           {body: `{"item":"teapot","quantity":1,"price":0}`, status: 400, worked: true},
		"a member twice":              {body: `{"item":"teapot","quantity":1,"quantity":99}`, status: 400, worked: true},
		"a member in capitals":        {body: `{"Item":"teapot","quantity":1}`, status: 400, worked: true},
		"deep nesting":                {body: deep, status: 400, worked: true},
		"deep nesting in a member":    {body: `{"item":` + deep, status: 400, worked: true},
		"not UTF-8":                   {body: "{\"item\":\"\xff\",\"quantity\":1}", status: 400, worked: true},
		"text for a number":           {body: `{"item":"teapot","quantity":"1"}`, status: 422, worked: true},
		"a number for a text":         {body: `{"item":1,"quantity":1}`, status: 422, worked: true},
		"a member that is null":       {body: `{"item":null,"quantity":1}`, status: 422, worked: true},
		"a member missing":            {body: `{"item":"teapot"}`, status: 422, worked: true},
		"half a teapot":               {body: `{"item":"teapot","quantity":0.5}`, status: 422, worked: true},
		"a quantity without end":      {body: `{"item":"teapot","quantity":1e999}`, status: 422, worked: true},
		"a quantity of nothing":       {body: `{"item":"teapot","quantity":0}`, status: 422, worked: true},
		"an item with NUL":            {body: `{"item":"tea\u0000pot","quantity":1}`, status: 422, worked: true},
		"an item too long":            {body: `{"item":"` + strings.Repeat("x", 201) + `","quantity":1}`, status: 422, worked: true},
		"a panic":                     {query: "?fail=panic", status: 500, worked: true},
		"a failure":                   {query: "?fail=500", status: 500, worked: true},
	}
}

// TestBadRequests: the contract's answer, nothing of the inside in it, and no claim left behind.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(t *testing.T) *backend{"memory and SQLite": embedded, "Redis and Postgres": redisAndPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, made(t), "IDEM_WAIT=0")
			for name, bad := range badRequests() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					bad.test(visit(t, d))
				})
			}
		})
	}
}

func (bad badRequest) test(v *visitor) {
	// To a client that asks to close the connection Go's server resets it when a large body stays unread, and the answer may be lost.
	v.client.Transport.(*http.Transport).DisableKeepAlives = false
	defer v.client.CloseIdleConnections()
	token, item := v.token(), v.item()
	a := v.do(bad.request(v, token, item))
	switch {
	case bad.code != "":
		v.wantRefused(a, bad.status, bad.code)
	default:
		v.want(a, bad.status)
	}
	v.discreet(a)
	if strings.Contains(a.body, token) {
		v.Error("the answer shows the token")
	}
	attempt := 1
	if bad.worked {
		attempt = 2
	}
	v.wantOrders(item, 0)
	v.wantFirst(v.submit(token, "", one(item)), attempt)
	v.wantOrders(item, 1)
}

func (bad badRequest) request(v *visitor, token, item string) *http.Request {
	body := bad.body
	if body == "" {
		body = one(item)
	}
	r := v.ordering(token, bad.query, body)
	for i := 0; i < len(bad.header); i += 2 {
		r.Header.Set(bad.header[i], bad.header[i+1])
	}
	if bad.stream {
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader([]byte(body))), -1, nil
	}
	return r
}

// TestBadCalls of the kit's own routes and of those guarded by key.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	v := visit(t, start(t, embedded(t)))
	const refund = "/api/refunds"
	for name, c := range map[string]struct {
		path, body string
		header     []string
		status     int
		code       string
	}{
		"token: no JSON":             {"/idem/token", "{", nil, 400, "bad_request"},
		"token: something behind":    {"/idem/token", "{} {}", nil, 400, "bad_request"},
		"token: wrong type":          {"/idem/token", `{"count":"many"}`, nil, 400, "bad_request"},
		"token: unknown member":      {"/idem/token", `{"subject":"me"}`, nil, 400, "bad_request"},
		"token: too many":            {"/idem/token", `{"count":33}`, nil, 400, "bad_request"},
		"token: none":                {"/idem/token", `{"count":0}`, nil, 400, "bad_request"},
		"token: action":              {"/idem/token", `{"action":"order create"}`, nil, 400, "bad_request"},
		"token: action empty":        {"/idem/token", `{"action":""}`, nil, 400, "bad_request"},
		"token: request id":          {"/idem/token", `{"requestId":"x"}`, nil, 400, "request_id_invalid"},
		"token: deep":                {"/idem/token", strings.Repeat("[", 60_000), nil, 400, "bad_request"},
		"token: deep member":         {"/idem/token", `{"action":` + strings.Repeat("[", 60_000), nil, 400, "bad_request"},
		"token: too large":           {"/idem/token", strings.Repeat(" ", 65<<10), nil, 413, "body_too_large"},
		"token: another origin":      {"/idem/token", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin"},
		"order: no token":            {"/api/orders", `{"item":"teapot","quantity":1}`, nil, 400, "token_missing"},
		"order: key for a token":     {"/api/orders", `{"item":"teapot","quantity":1}`, []string{"Idempotency-Key", "abc"}, 400, "token_missing"},
		"transfer: no key":           {"/api/transfers", `{}`, nil, 400, "key_missing"},
		"transfer: key too long":     {"/api/transfers", `{}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "key_invalid"},
		"transfer: key with a blank": {"/api/transfers", `{}`, []string{"Idempotency-Key", "a b"}, 400, "key_invalid"},
		"refund: no key":             {refund, `{"orderNo":"o-1","amount":5}`, nil, 400, "key_missing"},
		"refund: key is an object":   {refund, `{"refundNo":{},"orderNo":"o-1","amount":5}`, nil, 400, "key_invalid"},
		"refund: key is null":        {refund, `{"refundNo":null,"orderNo":"o-1","amount":5}`, nil, 400, "key_invalid"},
		"refund: deep":               {refund, strings.Repeat(`{"refundNo":`, 100_000), nil, 400, ""},
		"refund: no JSON":            {refund, `refundNo=1`, nil, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := visit(t, v.demo)
			a := v.post(c.path, c.body, c.header...)
			v.want(a, c.status)
			if c.code != "" {
				v.wantRefused(a, c.status, c.code)
			}
			v.discreet(a)
		})
	}
}
