package web

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
)

// refuse answers a submission in the form that its client wants. A page keeps what the person had typed.
func (s *submission) refuse(f *refusal) {
	s.log(s.r, f)
	p := s.problem(s.r, f, s.own, s.token.claims.RequestID)
	if wanted(s.r) == asJSON {
		s.writeJSON(s.w, s.r, p)
		return
	}
	props := s.props(p)
	s.tellFirst(&props, f)
	again := s.newPage(s.w, s.r, s.caller)
	props.Resubmit = s.resubmit(again, f.code)
	body := s.render(s.r.WithContext(again.in(s.r.Context())), p, props)
	if err := again.store(); err != nil || body == nil { // a form whose token is not stored would only be refused again
		props.Resubmit = nil
		body = s.render(s.r, p, props)
	}
	s.writeHTML(s.w, s.r, p, body)
}

func (g *Guard) props(p Problem) templates.ProblemProps {
	labels, ok := g.config.Labels[p.Language]
	spoken := p.Language
	if !ok {
		labels, spoken = templates.TextsFor(p.Language), templates.LanguageOf(p.Language)
	}
	return templates.ProblemProps{
		TextsLang: spoken,
		Lang:      p.Language, Title: p.Title, Detail: p.Detail, Code: p.Code, Status: p.Status, RequestID: p.RequestID,
		RetryAfter: p.RetryAfter, Texts: labels, Assets: g.assets,
	}
}

// render puts a refusal into its page, or into a fragment for htmx; nil where not even the kit's own page can be made.
func (g *Guard) render(r *http.Request, p Problem, props templates.ProblemProps) []byte {
	if _, err := templates.PageFrom(r.Context()); err != nil { // a layout may link the kit's assets
		r = r.WithContext(templates.WithPage(r.Context(), templates.Page{Assets: g.assets}))
	}
	content := templates.ProblemFragment(props)
	var whole templ.Component
	switch {
	case wanted(r) == asFragment:
		whole = content
	case g.config.ErrorPage != nil:
		whole = g.config.ErrorPage(r, p, content)
	default:
		whole = templates.ProblemPage(props)
	}
	for _, component := range []templ.Component{whole, templates.ProblemPage(props)} { // a layout that fails is no reason to show JSON to a person
		var body bytes.Buffer
		err := component.Render(r.Context(), &body)
		if err == nil {
			return body.Bytes()
		}
		g.config.Logger.ErrorContext(r.Context(), "idem: the page of a refusal failed", "code", p.Code, "error", err)
	}
	return nil
}

// writeHTML falls back to JSON where no page could be made.
func (g *Guard) writeHTML(w http.ResponseWriter, r *http.Request, p Problem, body []byte) {
	if body == nil {
		g.writeJSON(w, r, p)
		return
	}
	g.head(w, r, p, "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// tellFirst says of a changed payload what became of the first one, and links to it where that was a redirect.
func (s *submission) tellFirst(props *templates.ProblemProps, f *refusal) {
	if f.code != PayloadMismatch && f.code != AlreadyDone {
		return
	}
	switch f.record.State {
	case idem.Succeeded:
		props.First = templates.FirstDone
	case idem.Processing:
		props.First = templates.FirstRunning
	case idem.Failed, idem.Cancelled:
	}
	if !redirect(f.record.Result.Status) {
		return
	}
	for _, line := range f.record.Result.Header {
		if line[0] == "Location" {
			props.FirstURL = line[1]
		}
	}
}

// resubmit is the form that a refusal offers; nil where sending again would not help, or where it is not certain that the person
// meant to send this at all.
func (s *submission) resubmit(again *page, code string) *templates.Resubmit {
	if !s.byToken || !s.isForm() {
		return nil
	}
	offer := &templates.Resubmit{URL: sentTo(s.r), Enctype: s.mediaType}
	offer.Token.Action = s.businessType
	switch code {
	case InProgress, StoreUnavailable, OutcomeUnknown, ClaimLost:
		offer.Token.RequestID, offer.Token.Value = s.token.claims.RequestID, s.token.text
	case TokenExpired:
		offer.Token.RequestID = s.token.claims.RequestID
	case TokenWrongSubject:
		offer.Token.RequestID, offer.Confirm = s.token.claims.RequestID, true
	case PayloadMismatch:
		offer.New = true
	case TokenMissing, TokenInvalid, TokenUsed, RequestIDMismatch, RequestIDInvalid:
		offer.New, offer.Confirm = true, true
	default:
		return nil
	}
	entries, whole := s.entries()
	if !whole || (offer.Confirm && !sameOrigin(s.r)) {
		return nil
	}
	offer.Entries = entries
	if offer.Token.Value == "" {
		again.caller = s.introduce(s.w, s.r)
		if offer.New {
			offer.Token.RequestID = tokens.NewRequestID()
		}
	}
	return offer
}

// sentTo is path and query as the client sent them: a router may have cut the URL since.
func sentTo(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	if sent, err := url.Parse(r.RequestURI); err == nil && sent.Host != "" {
		return sent.RequestURI()
	}
	return r.URL.RequestURI()
}

// sameOrigin: the browser itself says so. Silence, which the guard lets pass, is not enough to offer somebody's submission to whoever is logged in now.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
}

// entries are what was typed; not whole where more was, which is not read: nothing is spooled for a token that is not authentic.
func (s *submission) entries() (entries []templates.Entry, whole bool) {
	if s.token.text != "" {
		if failure := s.read(); failure != nil {
			return nil, false
		}
	}
	form, failure := s.fields()
	if failure != nil {
		return nil, false
	}
	for _, text := range form.texts {
		switch {
		case text.name == tokenField, text.name == requestIDField:
		case text.noFile:
			entries = append(entries, templates.Entry{Name: text.name, Kind: templates.File})
		case s.isSecret(text.name):
			entries = append(entries, templates.Entry{Name: text.name, Kind: templates.Secret})
		case s.ignored[text.name]:
			entries = append(entries, templates.Entry{Name: text.name, Value: text.value, Kind: templates.Hidden})
		default:
			entries = append(entries, templates.Entry{Name: text.name, Value: text.value})
		}
	}
	for _, f := range form.files {
		entries = append(entries, templates.Entry{Name: f.field, Kind: templates.File})
	}
	return entries, form.whole
}
