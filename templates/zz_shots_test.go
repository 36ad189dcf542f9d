package templates

import (
	"bytes"
	"context"
	"os"
	"testing"
)

func TestShots(t *testing.T) {
	a := NewAssets(".")
	os.WriteFile("/tmp/shots/"+a.Style.HashedName, a.Style.Source, 0o644)
	os.WriteFile("/tmp/shots/"+a.Script.HashedName, a.Script.Source, 0o644)
	for name, p := range map[string]ProblemProps{
		"expired": {Title: "The form has expired", Detail: "This page was open for too long. Nothing has been submitted yet.", Advice: []string{"Look through what you entered and submit it again."},
			Code: "token_expired", Status: 409, RequestID: "01J9Z3T5KX8W4Q7M2N6P0R", Assets: a,
			Resubmit: &Resubmit{URL: "/form", Enctype: "multipart/form-data", Token: TokenField{Value: "x"}, Entries: []Entry{
				{Name: "item", Value: "Green tea"}, {Name: "quantity", Value: "3"}, {Name: "note", Value: "Please wrap it.\r\nIt is a present."}, {Name: "password", Kind: Secret}, {Name: "attachment", Kind: File}, {Name: "then", Value: "receipt"}}}},
		"mismatch": {Title: "This was submitted before, with other content", Detail: "What you sent now differs from what was sent under the same request.", Code: "payload_mismatch", Status: 422, First: FirstDone, FirstURL: "/orders/17", RequestID: "01J9Z3T5KX8W4Q7M2N6P0R", Assets: a,
			Resubmit: &Resubmit{URL: "/form", New: true, Token: TokenField{Value: "x"}, Entries: []Entry{{Name: "item", Value: "Green tea"}, {Name: "quantity", Value: "4"}}}},
		"subject": {Lang: "zh-CN", Title: "表单属于另一个账号", Detail: "打开此页面后登录状态发生了变化，尚未提交任何内容。", Code: "token_wrong_subject", Status: 403, Assets: a,
			Resubmit: &Resubmit{URL: "/form", Confirm: true, Token: TokenField{Value: "x"}, Entries: []Entry{{Name: "item", Value: "绿茶"}, {Name: "quantity", Value: "4"}}}},
		"busy": {Title: "Still in progress", Detail: "The first submission is still being worked on.", Code: "in_progress", Status: 409, RetryAfter: 5, Assets: a, RequestID: "01J9Z3T5KX8W4Q7M2N6P0R"},
	} {
		var b bytes.Buffer
		if err := ProblemPage(p).Render(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		os.WriteFile("/tmp/shots/"+name+".html", b.Bytes(), 0o644)
	}
}
