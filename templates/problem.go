package templates

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// ProblemProps is a refusal as a person sees it. All texts are plain; they are escaped.
type ProblemProps struct {
	Lang       string    // BCP 47, of Title, Detail and Advice; empty: "en"
	Title      string    // what happened, in a few words
	Detail     string    // what happened, in a sentence or two; empty: none
	Advice     []string  // what the person can do, a sentence each; nil: none
	Code       string    // the problem's code, such as "token_expired"
	Status     int       // HTTP status; 0: not shown
	RequestID  string    // to be quoted to the support; empty: not shown
	RetryAfter int       // seconds; 0: not shown
	First      First     // what became of the first submission
	FirstURL   string    // where its result is; empty: no link. Only http, https and relative URLs are linked
	Resubmit   *Resubmit // what was typed, to be sent again; nil: nothing is offered
	Texts      Texts     // the zero value: TextsFor(Lang)
	TextsLang  string    // BCP 47, of Texts; empty: Lang
	Assets     Assets    // what the full page links to
	Nonce      string    // of the script tag; empty: templ.GetNonce
}

// First is what became of the submission that came before.
type First int

// What a problem says about the first submission.
const (
	FirstUnsaid  First = iota // nothing is said
	FirstRunning              // it is still running
	FirstDone                 // it went through
)

// Resubmit is a form with everything that the person had typed.
type Resubmit struct {
	URL     string     // path and query as they were sent
	Enctype string     // the media type as it was sent, parameters are ignored; another would be another payload
	Entries []Entry    // in the order in which they were sent
	Token   TokenField // fresh: for the same request id or, where New, for a new one
	New     bool       // a new submission, not the same one again; chooses the button's text
	Confirm bool       // the person has to agree first: it may be somebody else who typed it
	Label   string     // of the button; empty: from Texts
}

// Entry is one name and value of a submission. A name may come several times.
type Entry struct {
	Name  string
	Value string    // of Typed and Hidden; never shown for the others
	Label string    // empty: the name
	Kind  EntryKind // zero: Typed
}

// EntryKind says how an entry is shown.
type EntryKind int

// The kinds of entries. Secrets and files are asked for again in their old place.
const (
	Typed  EntryKind = iota // visible, may be corrected; a text area where there are several lines
	Hidden                  // sent again unseen
	Secret                  // not kept
	File                    // cannot be kept: the browser gives no page a file that it did not choose there
)

func (e Entry) label() string { return firstOf(e.Label, e.Name) }

func (e Entry) multiline() bool { return strings.ContainsAny(e.Value, "\r\n") }

// content is the value inside a text area, whose first line break HTML ignores.
func (e Entry) content() string { return "\n" + e.Value }

func (e Entry) rows() string {
	return strconv.Itoa(min(3+strings.Count(e.Value, "\n"), 12))
}

func (r Resubmit) label(t Texts) string {
	if r.New {
		return firstOf(r.Label, t.AsNew)
	}
	return firstOf(r.Label, t.Again)
}

// visible reports whether there is anything to look at before sending.
func (r Resubmit) visible() bool {
	for _, e := range r.Entries {
		if e.Kind != Hidden {
			return true
		}
	}
	return false
}

// form leaves the boundary to the browser: with parameters it would not know the media type.
func (r Resubmit) form() FormProps {
	enctype, _, _ := strings.Cut(r.Enctype, ";")
	return FormProps{URL: local(r.URL), Enctype: strings.TrimSpace(enctype), Class: "idem-form"}
}

// local keeps a path that starts with two slashes on this host, where a browser would read a host name. The path
// that is sent stays the same, for browsers remove the dot.
func local(path string) string {
	if len(path) > 1 && path[0] == '/' && (path[1] == '/' || path[1] == '\\') {
		return "/." + path
	}
	return path
}

func linkable(s string) bool {
	u, err := url.Parse(s)
	return err == nil && s != "" && (u.Scheme == "" || u.Scheme == "http" || u.Scheme == "https")
}

func (p ProblemProps) lang() string { return firstOf(p.Lang, "en") }

func (p ProblemProps) textsLang() string {
	switch {
	case p.TextsLang != "":
		return p.TextsLang
	case p.Texts == (Texts{}):
		return LanguageOf(p.lang())
	}
	return p.lang()
}

// foreign marks what is in another language than the words around it.
func (p ProblemProps) foreign() templ.Attributes {
	if p.lang() == p.textsLang() {
		return nil
	}
	return templ.Attributes{"lang": p.lang()}
}

func (p ProblemProps) texts() Texts {
	if p.Texts == (Texts{}) {
		return TextsFor(p.lang())
	}
	return p.Texts
}

func (p ProblemProps) first() string {
	switch p.First {
	case FirstRunning:
		return p.texts().FirstRunning
	case FirstDone:
		return p.texts().FirstDone
	case FirstUnsaid:
	}
	return ""
}

func (p ProblemProps) wait() string {
	if p.RetryAfter <= 0 {
		return ""
	}
	return fmt.Sprintf(p.texts().RetryAfter, p.RetryAfter)
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
