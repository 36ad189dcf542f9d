package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// fillIn enters an order with a file, by hand as it were.
func (p *person) fillIn(item string) {
	p.Helper()
	p.enter("item", item)
	p.enter("quantity", "3")
	p.enter("note", "with a lid\nand a spout")
	testkit.Eval[int](p.Browser, `(() => {
		const chosen = new DataTransfer();
		chosen.items.add(new File(["with a lid"], "wishes.txt"));
		document.getElementById("attachment").files = chosen.files;
		return 1;
	})()`)
}

const tokenOfForm = `document.querySelector("form[data-idem] [name=idempotent_token]").value`

// TestRefusalGivesItBack, gitea#17850: a token that had expired lost the text. The page of a refusal has everything that was typed, says which file is
// to be chosen again, has the focus on what happened, and is completed with the keyboard.
func TestRefusalGivesItBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env     string
		prepare func(p *person, item string) // fills the form in; its submission is refused
		says    string
		confirm bool
		button  string
	}{
		"expired": {
			env: "IDEM_TOKEN_TTL=3s", prepare: fillInTooLate, button: "Submit again",
			says: "The form has expired This form was open for too long. Nothing was executed, and nothing of what you entered is lost: submit it again.",
		},
		"wrong subject": {
			prepare: func(p *person, item string) {
				p.open("/form")
				p.fillIn(item)
				p.forgetCookies()
			},
			says: "Not your session any more This form was opened in another session", confirm: true, button: "Submit again",
		},
		"mismatch": {
			prepare: fillInAfterBack, button: "Submit as something new",
			says: "Changed since it was submitted This was submitted before with other contents. The changed one was not executed. Your first submission went through.",
		},
	} {
		for scripts, how := range map[bool]string{true: "with JavaScript", false: "without JavaScript"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				p := sits(t, start(t, embedded(t), strings.Fields(c.env)...), scripts)
				item := p.item()
				c.prepare(p, item)
				p.Click("button.primary")
				for _, line := range []string{
					`main "`, `alert "` + c.says, `heading "What you entered" 2`, `textbox "Item" = "` + item + `"`, `textbox "Quantity" = "3"`,
					`textbox "Note" = "with a lid\nand a spout"`, `button "Attachment A file cannot be kept. Please choose it again. (wishes.txt)"`,
				} {
					p.hears(line)
				}
				testkit.Check(p.Browser, `document.activeElement.getAttribute("role")`, "alert")
				p.wantOrders(item, 0)
				p.submitAgain(c.button, c.confirm)
				p.hears(`heading "3 × ` + item + `" 1`)
				p.wantOrders(item, 1)
			})
		}
	}
}

// submitAgain goes on with the keyboard. Who takes longer than a token lives, as this does on a busy machine, is given the page once more.
func (p *person) submitAgain(button string, confirm bool) {
	p.Helper()
	for range 5 {
		before := testkit.Eval[string](p.Browser, tokenOfForm)
		if confirm {
			p.tabTo(`checkbox "I entered this myself`)
			p.press(" ")
		}
		p.tabTo(`button "` + button + `"`)
		p.press("\r")
		p.until(fmt.Sprintf(`document.querySelector(".receipt") !== null || ![undefined, %q].includes(document.querySelector("[name=idempotent_token]")?.value)`, before))
		if testkit.Eval[bool](p.Browser, `document.querySelector(".receipt") !== null`) {
			return
		}
	}
}

// fillInTooLate brings the expired token back where the client has renewed it.
func fillInTooLate(p *person, item string) {
	p.Helper()
	p.open("/form")
	shown, old := time.Now(), testkit.Eval[string](p.Browser, tokenOfForm)
	p.fillIn(item)
	testkit.Eventually(p.visitor, 10*time.Second, "the token is past its life", func() bool { return time.Since(shown) > 4*time.Second })
	testkit.Eval[string](p.Browser, fmt.Sprintf(`%s = %q`, tokenOfForm, old))
}

// fillInAfterBack orders something, goes back, and enters something else under the token that is spent.
func fillInAfterBack(p *person, item string) {
	p.Helper()
	p.open("/form")
	old := testkit.Eval[string](p.Browser, tokenOfForm)
	p.enter("item", p.item())
	p.Click("button.primary")
	p.until(receipt)
	p.back()
	p.until(`document.getElementById("item") !== null`)
	p.fillIn(item)
	testkit.Eval[string](p.Browser, fmt.Sprintf(`%s = %q`, tokenOfForm, old))
}
