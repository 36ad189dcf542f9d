package pgstore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/idemkit/idem"
)

// asBase64 is the third member of a header line that is not UTF-8: JSON would replace its bytes, and HTTP allows them.
const asBase64 = "base64"

// encodeHeader writes lines as JSON [["name","value"],...], which keeps their order and people can read.
func encodeHeader(header [][2]string) (string, error) {
	lines := make([][]string, len(header))
	for i, line := range header {
		lines[i] = line[:]
		if !utf8.ValidString(line[0]) || !utf8.ValidString(line[1]) {
			lines[i] = []string{base64.StdEncoding.EncodeToString([]byte(line[0])), base64.StdEncoding.EncodeToString([]byte(line[1])), asBase64}
		}
	}
	text, err := json.Marshal(lines)
	return string(text), err
}

func decodeHeader(text string) ([][2]string, error) {
	var lines [][]string
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		return nil, fmt.Errorf("result_headers: %w", err)
	}
	header := make([][2]string, len(lines))
	for i, line := range lines {
		decoded, err := decodeLine(line)
		if err != nil {
			return nil, err
		}
		header[i] = decoded
	}
	return header, nil
}

func decodeLine(line []string) ([2]string, error) {
	switch {
	case len(line) == 2:
		return [2]string{line[0], line[1]}, nil
	case len(line) == 3 && line[2] == asBase64:
		name, badName := base64.StdEncoding.DecodeString(line[0])
		value, badValue := base64.StdEncoding.DecodeString(line[1])
		if badName == nil && badValue == nil {
			return [2]string{string(name), string(value)}, nil
		}
	}
	return [2]string{}, fmt.Errorf("%w: result_headers has a line of an unknown form", idem.ErrFormat)
}

// reasonColumn is null for no reason.
func reasonColumn(reason string) *string {
	if reason == "" {
		return nil
	}
	reason = idem.Reason(reason)
	return &reason
}
