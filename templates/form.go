package templates

import "github.com/a-h/templ"

// The names of the form fields on the wire.
const (
	TokenName     = "idempotent_token"
	RequestIDName = "idempotent_request_id"
)

// TokenField says which token a form carries.
type TokenField struct {
	Action    string // what the token permits, such as "order.create"
	RequestID string // the intention to go on with; empty: the page decides
	Value     string // a token that was issued already; empty: the page's issuer is asked
	// ShowRequestID adds the field idempotent_request_id. The token carries the request id already; the field is for those who read the form.
	ShowRequestID bool
}

// FormProps describes a form that submits once.
type FormProps struct {
	Action     string           // what its token permits, such as "order.create"; not the form's URL
	URL        string           // where it is sent to; empty: the page's own URL
	Enctype    string           // "multipart/form-data" for files; empty: the browser's default, urlencoded
	RequestID  string           // the intention to go on with; empty: the page decides
	ID         string           // of the element; empty: none
	Class      string           // of the element; empty: none
	Attributes templ.Attributes // further ones, such as data-idem-timeout; nil: none
}

func (p FormProps) token() TokenField { return TokenField{Action: p.Action, RequestID: p.RequestID} }

// SubmitProps describes a submit button. Its content is the label or, where that is empty, the component's children.
type SubmitProps struct {
	Name       string           // sent with Value when this button submits; empty: nothing is sent
	Value      string           // what is sent under Name
	Label      string           // plain text
	Busy       string           // the label while the submission runs; empty: it stays
	Class      string           // of the element; empty: none
	Attributes templ.Attributes // further ones; nil: none
}

// MetaProps describes what a single-page application finds in the head of its page.
type MetaProps struct {
	Action    string // of the first token, and the client's default action
	RequestID string // the intention to go on with; empty: the page decides
}
