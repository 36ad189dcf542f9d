package templates_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/idemkit/idem/js"
	"github.com/idemkit/idem/templates"
)

func TestNewAssets(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"/idem": "/idem", "/idem/": "/idem", "/": "", "": "", "/api/idempotent": "/api/idempotent"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			t.Parallel()
			a := templates.NewAssets(prefix)
			for got, want := range map[string]string{
				a.ScriptURL(): want + "/" + js.Load().HashedName,
				a.StyleURL():  want + "/" + templates.Stylesheet().HashedName,
				a.TokenURL():  want + "/token",
			} {
				if got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
}

func TestStylesheet(t *testing.T) {
	t.Parallel()
	sheet := templates.Stylesheet()
	onDisk, err := os.ReadFile("idem.css")
	if err != nil {
		t.Fatal(err)
	}
	if string(sheet.Source) != string(onDisk) || sheet.Name != "idem.css" {
		t.Errorf("%s differs from idem.css", sheet.Name)
	}
	for _, outside := range []string{"url(", "@import", "@font-face"} {
		if strings.Contains(string(sheet.Source), outside) {
			t.Errorf("the style sheet loads something: %s", outside)
		}
	}
}

// The style sheet touches nothing in an application's own layout: every selector holds an idem- class.
func TestStylesheetKeepsToItself(t *testing.T) {
	t.Parallel()
	source := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(templates.Stylesheet().Source), "")
	for _, selectors := range regexp.MustCompile(`([^{}]+)\{`).FindAllStringSubmatch(source, -1) {
		for selector := range strings.SplitSeq(selectors[1], ",") {
			if selector = strings.TrimSpace(selector); !strings.HasPrefix(selector, ".idem-") && !strings.HasPrefix(selector, "@media") {
				t.Errorf("%q reaches outside", selector)
			}
		}
	}
}

// WCAG 2.2: 4.5 to 1 for text (1.4.3), 3 to 1 for the edges of fields and the focus ring (1.4.11).
func TestContrast(t *testing.T) {
	t.Parallel()
	light, dark := palettes(t)
	for _, tc := range []struct {
		front, back string
		least       float64
	}{
		{"ink", "paper", 4.5}, {"ink", "ground", 4.5}, {"soft", "paper", 4.5}, {"paper", "soft", 4.5}, {"accent", "paper", 4.5},
		{"accent-strong", "paper", 4.5}, {"on-accent", "accent", 4.5}, {"on-accent", "accent-strong", 4.5}, {"line", "paper", 3}, {"mark", "ground", 3},
	} {
		for scheme, colors := range map[string]map[string]float64{"light": light, "dark": dark} {
			t.Run(fmt.Sprintf("%s, %s on %s", scheme, tc.front, tc.back), func(t *testing.T) {
				t.Parallel()
				a, b := colors[tc.front], colors[tc.back]
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < tc.least {
					t.Errorf("contrast %.2f, want %.1f", ratio, tc.least)
				}
			})
		}
	}
}

// palettes returns the relative luminance of each colour, in the light and in the dark scheme.
func palettes(t *testing.T) (light, dark map[string]float64) {
	t.Helper()
	light, dark = make(map[string]float64), make(map[string]float64)
	for _, m := range regexp.MustCompile(`--idem-([a-z-]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(string(templates.Stylesheet().Source), -1) {
		into := light
		if _, seen := light[m[1]]; seen {
			into = dark
		}
		into[m[1]] = luminance(t, m[2])
	}
	if len(light) < 9 || len(dark) != len(light) {
		t.Fatalf("%d light colours and %d dark ones", len(light), len(dark))
	}
	return light, dark
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(value) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
			continue
		}
		sum += weight * math.Pow((c+0.055)/1.055, 2.4)
	}
	return sum
}
