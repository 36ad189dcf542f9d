// Package templates holds templ components for pages that submit once: forms and metas that carry a token, the client's
// script tag, and the pages that refusals show to people.
//
// Components take their tokens from the [Page] in the context, which guard.Forms of package web puts there:
//
//	@templates.Form(templates.FormProps{Action: "order.create", URL: "/orders"}) {
//		<label>Item <input name="item"/></label>
//		@templates.Submit(templates.SubmitProps{Label: "Order", Busy: "Ordering…"})
//	}
//
// Every form gets a token and a request id of its own. A form that is shown again after a refusal keeps the request id that it was
// sent with. Nothing here needs JavaScript or inline scripts and styles; a Content-Security-Policy of 'self' is enough.
package templates
