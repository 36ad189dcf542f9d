package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
)

// heard is a page as a screen reader is told of it: Chromium's accessibility tree, a line for each node that means something, such as
// `button "Place order"` or `textbox "Item" = "tea" focused`. What has no name of its own is called by the text within.
func (p *person) heard() []string {
	p.Helper()
	var nodes []*accessibility.Node
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		result, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err == nil { // otherwise one page goes and another comes: there is nothing to hear
			nodes = result.Nodes
		}
		return nil
	}))
	tree := make(tree, len(nodes))
	for _, n := range nodes {
		tree[n.NodeID] = n
	}
	var lines []string
	for _, n := range nodes {
		if line := tree.line(n); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

type tree map[accessibility.NodeID]*accessibility.Node

func (t tree) line(n *accessibility.Node) string {
	role := word(n.Role)
	if n.Ignored || slices.Contains([]string{"", "none", "generic", "StaticText", "InlineTextBox", "LineBreak", "ListMarker"}, role) {
		return ""
	}
	line := fmt.Sprintf("%s %q", role, strings.Join(strings.Fields(t.called(n)), " "))
	if value := word(n.Value); value != "" {
		line += fmt.Sprintf(" = %q", value)
	}
	if described := word(n.Description); described != "" {
		line += fmt.Sprintf(" (%s)", described)
	}
	for _, property := range n.Properties {
		switch value := word(property.Value); {
		case property.Name == "level":
			line += " " + value
		case value == "true" && slices.Contains([]string{"focused", "busy", "disabled", "invalid", "required", "readonly"}, string(property.Name)):
			line += " " + string(property.Name)
		case property.Name == "checked":
			line += " checked=" + value
		}
	}
	return line
}

// called is the node's name, or the text within it.
func (t tree) called(n *accessibility.Node) string {
	if name := word(n.Name); name != "" {
		return name
	}
	var texts []string
	for _, id := range n.ChildIDs {
		if child := t[id]; child != nil && word(child.Role) != "ListMarker" {
			texts = append(texts, t.called(child))
		}
	}
	return strings.Join(texts, " ")
}

func word(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var value any
	if json.Unmarshal(v.Value, &value) != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// hears waits until a line of the tree begins so.
func (p *person) hears(begin string) {
	p.Helper()
	var lines []string
	defer func() {
		if p.Failed() {
			p.Logf("the page says:\n%s", strings.Join(lines, "\n"))
		}
	}()
	testkit.Eventually(p.visitor, 30*time.Second, begin, func() bool {
		lines = p.heard()
		return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, begin) })
	})
}
