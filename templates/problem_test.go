package templates_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/idemkit/idem/templates"
)

func typed() []templates.Entry {
	return []templates.Entry{
		{Name: "item", Value: "Green tea", Label: "Item"},
		{Name: "tag", Value: "hot"},
		{Name: "note", Value: "\r\nfirst line was empty\r\nlast"},
		{Name: "tag", Value: ""},
		{Name: "password", Value: "hunter2", Kind: templates.Secret},
		{Name: "attachment", Value: "C:\\a.pdf", Kind: templates.File},
		{Name: "then", Value: "receipt", Kind: templates.Hidden},
	}
}

func expired() templates.ProblemProps {
	return templates.ProblemProps{
		Title: "The form has expired", Detail: "Nothing has been submitted yet.", Advice: []string{"Look it through.", "Submit it again."},
		Code: "token_expired", Status: 409, RequestID: "request-0001", Assets: assets(),
		Resubmit: &templates.Resubmit{
			URL: "/form?delay=1s", Enctype: "multipart/form-data; boundary=x", Entries: typed(),
			Token: templates.TokenField{Value: "fresh", RequestID: "request-0001"},
		},
	}
}

func mismatch(first templates.First, url string) templates.ProblemProps {
	return templates.ProblemProps{
		Title: "Submitted before, with other content", Code: "payload_mismatch", Status: 422, RequestID: "request-0001",
		First: first, FirstURL: url, Assets: assets(), Nonce: "bm9uY2U=",
		Resubmit: &templates.Resubmit{URL: "/form", New: true, Entries: typed()[:1], Token: templates.TokenField{Value: "fresh"}},
	}
}

func hostile() templates.ProblemProps {
	const bad = `"><script>alert(1)</script>'`
	p := expired()
	p.Lang, p.Title, p.Detail, p.Advice, p.Code, p.RequestID, p.Nonce = bad, bad, bad, []string{bad}, bad, bad, bad
	p.First, p.FirstURL = templates.FirstDone, "javascript:alert(1)"
	p.Resubmit.URL, p.Resubmit.Enctype, p.Resubmit.Label = "//evil.example/form", bad, bad
	p.Resubmit.Token = templates.TokenField{Value: bad}
	p.Resubmit.Entries = []templates.Entry{
		{Name: bad, Value: bad}, {Name: bad, Value: "\n</textarea>" + bad}, {Name: bad, Value: bad, Kind: templates.Hidden},
		{Name: bad, Value: bad, Kind: templates.Secret}, {Name: bad, Value: bad, Kind: templates.File},
	}
	return p
}

func TestGoldenProblems(t *testing.T) {
	t.Parallel()
	subject := expired()
	subject.Lang, subject.Title, subject.Code, subject.Status = "zh-CN", "表单属于另一个账号", "token_wrong_subject", 403
	subject.Resubmit.Confirm = true
	busy := templates.ProblemProps{Title: "In progress", Code: "in_progress", Status: 409, RetryAfter: 2, Assets: assets()}
	for name, c := range map[string]templ.Component{
		"problem-expired":  templates.ProblemPage(expired()),
		"problem-subject":  templates.ProblemPage(subject),
		"problem-done":     templates.ProblemPage(mismatch(templates.FirstDone, "/orders/17")),
		"problem-running":  templates.ProblemPage(mismatch(templates.FirstRunning, "")),
		"problem-busy":     templates.ProblemPage(busy),
		"problem-bare":     templates.ProblemFragment(templates.ProblemProps{Title: "No"}),
		"problem-fragment": templates.ProblemFragment(expired()),
		"problem-hostile":  templates.ProblemPage(hostile()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, render(t.Context(), t, c))
		})
	}
}

func TestProblemEscapes(t *testing.T) {
	t.Parallel()
	html := render(t.Context(), t, templates.ProblemPage(hostile()))
	for _, raw := range []string{"<script>", "javascript:", `action="//`} {
		if strings.Contains(html, raw) {
			t.Errorf("%s went through", raw)
		}
	}
	if n := strings.Count(html, "</textarea>"); n != 1 {
		t.Errorf("%d ends of a text area, want 1", n)
	}
}

func TestProblemHasNothingInline(t *testing.T) {
	t.Parallel()
	for _, p := range []templates.ProblemProps{expired(), mismatch(templates.FirstDone, "/orders/1"), hostile()} {
		html := render(t.Context(), t, templates.ProblemPage(p))
		for _, inline := range []string{"<style", "style=", " onclick", " onsubmit", " onload"} {
			if strings.Contains(html, inline) {
				t.Errorf("%s in %s", inline, p.Code)
			}
		}
		if strings.Count(html, "<script") != strings.Count(html, "<script defer src=") {
			t.Errorf("an inline script in %s", p.Code)
		}
	}
}

func TestProblemShowsNoSecret(t *testing.T) {
	t.Parallel()
	html := render(t.Context(), t, templates.ProblemPage(expired()))
	for _, dropped := range []string{"hunter2", "a.pdf"} {
		if strings.Contains(html, dropped) {
			t.Errorf("%s is shown", dropped)
		}
	}
	for _, said := range []string{templates.English().Secret, templates.English().File} {
		if !strings.Contains(html, said) {
			t.Errorf("%q is not said", said)
		}
	}
}

// Another order of fields of one name is another payload.
func TestProblemKeepsTheOrder(t *testing.T) {
	t.Parallel()
	html := render(t.Context(), t, templates.ProblemPage(expired()))
	_, html, _ = strings.Cut(html, "<form")
	for _, name := range []string{templates.TokenName, "item", "tag", "note", "tag", "password", "attachment", "then"} {
		_, rest, found := strings.Cut(html, `name="`+name+`"`)
		if !found {
			t.Fatalf("%s is missing or out of order", name)
		}
		html = rest
	}
	if strings.Contains(html, "name=") {
		t.Errorf("the button or something else would be sent too: %s", html)
	}
}

func TestProblemAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ sent, first, want, unwanted string }{
		"path":                  {sent: "/form?a=1&b=2", want: `action="/form?a=1&amp;b=2"`},
		"two slashes stay here": {sent: "//evil.example", want: `action="/.//evil.example"`},
		"backslash":             {sent: `/\evil.example`, want: `action="/./\evil.example"`},
		"root":                  {sent: "/", want: `action="/"`},
		"no path":               {sent: "", want: `<form method="post" class`},
		"script":                {sent: "javascript:alert(1)", want: `action="about:invalid`},
		"first, relative":       {sent: "/", first: "../orders/1", want: `<a href="../orders/1">`},
		"first, absolute":       {sent: "/", first: "https://shop.example/1", want: `<a href="https://shop.example/1">`},
		"first, none":           {sent: "/", unwanted: "<a "},
		"first, script":         {sent: "/", first: "JavaScript:alert(1)", unwanted: "<a "},
		"first, unparsable":     {sent: "/", first: "http://[", unwanted: "<a "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mismatch(templates.FirstDone, tc.first)
			p.Resubmit.URL = tc.sent
			html := render(t.Context(), t, templates.ProblemFragment(p))
			if !strings.Contains(html, tc.want) || (tc.unwanted != "" && strings.Contains(html, tc.unwanted)) {
				t.Errorf("want %q, not %q, in %s", tc.want, tc.unwanted, html)
			}
		})
	}
}

// A page may offer a form whose token is still to be issued.
func TestProblemTakesItsTokenFromThePage(t *testing.T) {
	t.Parallel()
	p := expired()
	p.Resubmit.Token = templates.TokenField{Action: "order.create", RequestID: "request-0001"}
	issuer := &ring{}
	render(onPage(t, issuer), t, templates.ProblemFragment(p))
	if len(issuer.asked) != 1 || issuer.asked[0] != "order.create/request-0001" {
		t.Errorf("issuer asked for %q", issuer.asked)
	}
	if err := templates.ProblemFragment(p).Render(t.Context(), &strings.Builder{}); err == nil {
		t.Error("rendered without issuer")
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]templates.Texts{
		"": templates.English(), "en": templates.English(), "de-AT": templates.English(), "zhx": templates.English(),
		"zh": templates.Chinese(), "ZH-Hant-TW": templates.Chinese(), "zh-CN": templates.Chinese(),
	} {
		t.Run("tag "+tag, func(t *testing.T) {
			t.Parallel()
			if got := templates.TextsFor(tag); got != want {
				t.Errorf("TextsFor(%q) = %+v", tag, got)
			}
			if strings.Count(want.RetryAfter, "%d") != 1 {
				t.Errorf("no place for the seconds in %q", want.RetryAfter)
			}
			for field, text := range reflect.ValueOf(want).Fields() {
				if text.String() == "" {
					t.Errorf("%s is empty", field.Name)
				}
			}
		})
	}
}

func TestOwnTexts(t *testing.T) {
	t.Parallel()
	p := expired()
	p.Texts = templates.English()
	p.Texts.Again = "Noch einmal"
	if html := render(t.Context(), t, templates.ProblemFragment(p)); !strings.Contains(html, "Noch einmal") {
		t.Error("the application's text is not used")
	}
}
