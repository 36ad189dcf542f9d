package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem"
)

// visitor is one person's client of a demo. It keeps cookies and follows no redirect: where one leads is what a test looks at.
type visitor struct {
	*testing.T
	demo   *demo
	base   string // empty: the demo's own address
	client *http.Client
}

func visit(t *testing.T, d *demo) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	// Without connections that are used again Go's transport repeats no request unasked.
	transport := &http.Transport{DisableKeepAlives: true}
	v := &visitor{T: t, demo: d}
	v.client = &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return v
}

// at is the same person at another process: the cookie goes with the host, whatever the port.
func (v *visitor) at(d *demo) *visitor { return &visitor{T: v.T, demo: d, client: v.client} }

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

func (v *visitor) url(path string) string {
	if v.base != "" {
		return v.base + path
	}
	return v.demo.url() + path
}

func (v *visitor) request(method, path, body string, header ...string) *http.Request {
	v.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(v.Context()), method, v.url(path), strings.NewReader(body))
	must(v.T, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// try is for goroutines, which must not end the test.
func (v *visitor) try(r *http.Request) (answer, error) {
	response, err := v.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		v.demo.secret(cookie.Value)
	}
	body, err := io.ReadAll(response.Body)
	return answer{response, string(body)}, err
}

func (v *visitor) do(r *http.Request) answer {
	v.Helper()
	a, err := v.try(r)
	must(v.T, err)
	return a
}

func (v *visitor) get(path string) answer {
	v.Helper()
	return v.do(v.request(http.MethodGet, path, ""))
}

// post sends JSON.
func (v *visitor) post(path, body string, header ...string) answer {
	v.Helper()
	return v.do(v.request(http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, header...)...))
}

// token asks for a token for one order, and with it names the browser.
func (v *visitor) token() string {
	v.Helper()
	token, _ := v.tokenFor("order.create")
	return token
}

func (v *visitor) tokenFor(action string) (token, requestID string) {
	v.Helper()
	a := v.post("/idem/token", `{"action":"`+action+`"}`)
	v.want(a, http.StatusCreated)
	token = member[string](v, a, "token")
	v.demo.secret(token)
	return token, member[string](v, a, "requestId")
}

// ordering is the request for an order under a token.
func (v *visitor) ordering(token, query, body string) *http.Request {
	v.Helper()
	return v.request(http.MethodPost, "/api/orders"+query, body, "Content-Type", "application/json", "Idempotent-Token", token)
}

// submit orders.
func (v *visitor) submit(token, query, body string) answer {
	v.Helper()
	return v.do(v.ordering(token, query, body))
}

// item is one that nobody else orders. Like everything that is typed it is not for the log.
func (v *visitor) item() string {
	item := "teapot " + idem.NewOwner()[:12]
	v.demo.secret(item)
	return item
}

// one is the body of an order of one piece.
func one(item string) string { return `{"item":"` + item + `","quantity":1}` }

// ordered counts what was really created.
func (v *visitor) ordered(item string) int {
	v.Helper()
	return int(member[float64](v, v.get("/api/orders?item="+url.QueryEscape(item)), "count"))
}

func (v *visitor) wantOrders(item string, n int) {
	v.Helper()
	if got := v.ordered(item); got != n {
		v.Errorf("%d orders, want %d", got, n)
	}
}

func (v *visitor) want(a answer, status int) {
	v.Helper()
	if a.StatusCode != status {
		v.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
}

// wantFirst: executed by this call, under this attempt.
func (v *visitor) wantFirst(a answer, attempt int) {
	v.Helper()
	v.want(a, http.StatusCreated)
	if got := int(member[float64](v, a, "attempt")); got != attempt {
		v.Errorf("attempt %d, want %d", got, attempt)
	}
	if replayed(a) {
		v.Error("it says that it is a replay")
	}
}

// wantReplay: the first answer again, byte for byte and line for line.
func (v *visitor) wantReplay(a, first answer) {
	v.Helper()
	v.want(a, first.StatusCode)
	if !replayed(a) {
		v.Error("the replay is not marked")
	}
	if difference := differ(first, a); difference != "" {
		v.Error(difference)
	}
}

func replayed(a answer) bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// differ tells what of an answer is not as in the first one, apart from its date and the mark of a replay.
func differ(first, a answer) string {
	if a.StatusCode != first.StatusCode || a.body != first.body {
		return fmt.Sprintf("%d %q, the first was %d %q", a.StatusCode, a.body, first.StatusCode, first.body)
	}
	for _, header := range []http.Header{first.Header, a.Header} {
		for name := range header {
			if name != "Date" && name != "Idempotent-Replayed" && !slices.Equal(first.Header[name], a.Header[name]) {
				return fmt.Sprintf("%s is %q, in the first answer %q", name, a.Header[name], first.Header[name])
			}
		}
	}
	return ""
}

// wantRefused: a problem with this code, in the shape of RFC 9457.
func (v *visitor) wantRefused(a answer, status int, code string) {
	v.Helper()
	v.want(a, status)
	if got := member[string](v, a, "code"); got != code {
		v.Errorf("code %s, want %s: %s", got, code, a.body)
	}
	if a.Header.Get("Content-Type") != "application/problem+json" || member[string](v, a, "type") != "/idem/problems/"+code {
		v.Errorf("%s is no problem of the kit: %s", a.Header.Get("Content-Type"), a.body)
	}
}

// member reads one member of a JSON answer.
func member[T any](v *visitor, a answer, name string) T {
	v.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		v.Fatalf("%v: %s", err, a.body)
	}
	value, ok := object[name].(T)
	if !ok {
		v.Fatalf("member %s is %T: %s", name, object[name], a.body)
	}
	return value
}

// later is a request under way.
type later struct {
	done chan struct{}
	answer
	err error
}

func (v *visitor) begin(r *http.Request) *later {
	l := &later{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.answer, l.err = v.try(r)
	}()
	return l
}

// wait is the answer; it fails the test where there is none.
func (v *visitor) wait(l *later) answer {
	v.Helper()
	<-l.done
	must(v.T, l.err)
	return l.answer
}

// together sends n requests at the same moment and returns all answers.
func (v *visitor) together(n int, make func(i int) *http.Request) []answer {
	v.Helper()
	answers, failures := slices.Repeat([]answer{{}}, n), slices.Repeat([]error{nil}, n)
	requests, begin := []*http.Request{}, sync.WaitGroup{}
	for i := range n {
		requests = append(requests, make(i))
	}
	for i, r := range requests {
		begin.Go(func() { answers[i], failures[i] = v.try(r) })
	}
	begin.Wait()
	for _, err := range failures {
		must(v.T, err)
	}
	return answers
}

// wantOneFirst: all answers are the same, and exactly one was no replay.
func (v *visitor) wantOneFirst(answers []answer) {
	v.Helper()
	firsts := 0
	for _, a := range answers {
		if !replayed(a) {
			firsts++
		}
		v.want(a, http.StatusCreated)
		if difference := differ(answers[0], a); difference != "" {
			v.Fatal(difference)
		}
	}
	if firsts != 1 {
		v.Errorf("%d answers of %d say that they were executed", firsts, len(answers))
	}
}
