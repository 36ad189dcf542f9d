package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// driver is a private Firefox, driven through Node by puppeteer-core over WebDriver BiDi.
type driver struct {
	commands io.WriteCloser
	answers  *json.Decoder
}

// firefox is one page, with nobody else in front of it. The visitor beside it counts what was ordered.
type firefox struct {
	*visitor
	*driver
}

func drive(t *testing.T) *driver {
	t.Helper()
	profile := t.TempDir()
	cmd := exec.Command(testkit.Binary(t, "node", "nodejs"), "firefox.mjs", testkit.Binary(t, "firefox-esr", "firefox-esr"), profile)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	cmd.Stderr = os.Stderr
	commands, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { // without a word more to come Node ends the browser, and itself
		_ = commands.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the driver of Firefox: %v", err)
		}
	})
	return &driver{commands, json.NewDecoder(bufio.NewReader(output))}
}

func (d *driver) at(t *testing.T, shop *demo) *firefox {
	t.Helper()
	f := &firefox{visit(t, shop), d}
	f.do("open")
	return f
}

// ask sends a command and returns its value.
func (d *driver) ask(command ...string) (json.RawMessage, error) {
	if err := json.NewEncoder(d.commands).Encode(command); err != nil {
		return nil, err
	}
	var answer struct {
		Value json.RawMessage `json:"value"`
		Error string          `json:"error"`
	}
	err := d.answers.Decode(&answer)
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	return answer.Value, err
}

func (f *firefox) do(command ...string) json.RawMessage {
	f.Helper()
	value, err := f.ask(command...)
	if err != nil {
		f.Fatalf("%q: %v", command, err)
	}
	return value
}

// text is the value of an expression in the page.
func (f *firefox) text(expression string) (value string) {
	f.Helper()
	must(f.T, json.Unmarshal(f.do("eval", expression), &value))
	return value
}

// until polls an expression. While one page goes and another comes there is nothing to ask.
func (f *firefox) until(expression string) {
	f.Helper()
	testkit.Eventually(f, 30*time.Second, expression, func() bool {
		value, err := f.ask("eval", expression)
		return err == nil && string(value) == "true"
	})
}

func (f *firefox) enter(id, text string) {
	f.Helper()
	f.do("eval", fmt.Sprintf(`document.getElementById(%q).value = ""`, id))
	f.do("type", "#"+id, text)
}

const tokenShown = `document.querySelector("[name=idempotent_token]").value`

// TestFirefox has one browser, for it is slow to start: its pages come one after the other.
func TestFirefox(t *testing.T) {
	t.Parallel()
	d := drive(t)
	for name, test := range map[string]func(f *firefox, stored bool){"reload": reloaded, "back": wentBack, "resend": resent} {
		// The shop's form as it is sent, which Firefox loads again, and one that may be stored, which it restores.
		for how, stored := range map[string]bool{"not stored": false, "stored": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				f := d.at(t, start(t, embedded(t)))
				l := through(t, f.demo, nil)
				l.keeps.Store(stored)
				f.do("goto", l.URL+"/form")
				test(f, stored)
			})
		}
	}
	for name, instead := range losses() {
		t.Run(name, func(t *testing.T) {
			f := d.at(t, start(t, embedded(t)))
			l := through(t, f.demo, instead)
			f.do("goto", l.URL+"/form")
			l.lose.Store(true)
			repeated(f, name == "answered 408")
		})
	}
}

// reloaded: Firefox fills a form that is loaded again with what it held before, hidden fields included (rails#43280). Not with the old token.
func reloaded(f *firefox, stored bool) {
	f.Helper()
	item := f.item()
	f.enter("note", "as typed")
	f.do("eval", tokenShown+` = "an old token"`)
	f.do("reload")
	if restored := f.text(`document.getElementById("note").value`) == "as typed"; restored != stored {
		f.Errorf("what was typed is restored: %v, want %v", restored, stored)
	}
	if token := f.text(tokenShown); strings.Count(token, ".") != 2 {
		f.Errorf("after the reload the token is %q", token)
	}
	f.enter("item", item)
	f.do("click", "button.primary")
	f.until(receipt)
	f.wantOrders(item, 1)
}

// wentBack: a changed entry in the page that Back shows is not dropped in silence (sure#3338).
func wentBack(f *firefox, stored bool) {
	f.Helper()
	item, other := f.item(), f.item()
	f.enter("item", item)
	f.do("click", "button.primary")
	f.until(receipt)
	f.do("eval", `history.back()`)
	f.until(`document.getElementById("item") !== null && document.querySelector("form[aria-busy]") === null`)
	f.enter("item", other)
	f.enter("note", "a second one")
	f.do("click", "button.primary")
	if stored { // with the token of the first
		f.until(`document.querySelector("[data-code=payload_mismatch]") !== null`)
		f.wantOrders(other, 0)
		if note := f.text(`document.querySelector("[name=note]").value`); note != "a second one" {
			f.Errorf("the note is now %q", note)
		}
		f.do("click", ".idem-problem button[type=submit]")
	}
	f.until(receipt)
	f.wantOrders(item, 1)
	f.wantOrders(other, 1)
}

// resent: an answer that is loaded again is the same submission again.
func resent(f *firefox, _ bool) {
	f.Helper()
	item := f.item()
	f.do("eval", `location.search = "?fail=500"`)
	f.until(`location.search !== "" && document.getElementById("item") !== null`)
	f.enter("item", item)
	f.do("click", "button.primary")
	f.until(`document.querySelector("[role=alert]") !== null`)
	f.wantOrders(item, 0)
	f.do("reload")
	f.until(receipt)
	f.wantOrders(item, 1)
}

// repeated: a kept connection that is closed Firefox takes as Chromium does; 408 it shows to the person, who loads the answer again.
func repeated(f *firefox, shown bool) {
	f.Helper()
	item := f.item()
	f.enter("item", item)
	f.do("click", "button.primary")
	if shown {
		f.until(`document.forms.length === 0 && location.pathname === "/form"`)
		f.do("reload")
	}
	f.until(receipt)
	f.arrived("/form", 2)
	f.wantOrders(item, 1)
}
