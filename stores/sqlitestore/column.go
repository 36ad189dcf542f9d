package sqlitestore

import (
	"database/sql"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/idemkit/idem"
)

// intention are the arguments of find and giveUp.
func intention(q idem.Request) []any {
	return []any{idem.Column(q.Key.Tenant), idem.Column(q.Key.Type), q.Key.Column(), idem.Column(q.Subject), optional(q.RequestID)}
}

// fencing are the arguments of the fence in statements.
func fencing(c idem.Claim) []any {
	return []any{idem.Column(c.Key.Tenant), idem.Column(c.Key.Type), c.Key.Column(), idem.Column(c.Owner), c.Attempt, idem.Format}
}

// optional is NULL for an empty string.
func optional(s string) sql.NullString {
	return sql.NullString{String: idem.Column(s), Valid: s != ""}
}

// given is the caller's own string where the column holds it, and the column's text otherwise.
func given(column, own string) string {
	if column == idem.Column(own) {
		return own
	}
	return column
}

// keyOf is the caller's key where the column stands for it, otherwise the column taken apart again.
func keyOf(column string, asked idem.Key) idem.Key {
	if column == asked.Column() {
		return asked
	}
	return idem.KeyOf(asked.Tenant, asked.Type, column)
}

// binaryHeader marks header lines that are not UTF-8, which JSON cannot hold as they are.
const binaryHeader = "base64:"

// encodeHeader keeps header lines byte for byte, readable where they are UTF-8. The error is json.Marshal's, which takes strings and bytes always.
func encodeHeader(header [][2]string) (string, error) {
	plain := true
	binary := make([][2][]byte, len(header))
	for i, line := range header {
		plain = plain && utf8.ValidString(line[0]) && utf8.ValidString(line[1])
		binary[i] = [2][]byte{[]byte(line[0]), []byte(line[1])}
	}
	if !plain {
		text, err := json.Marshal(binary)
		return binaryHeader + string(text), err
	}
	if header == nil {
		header = [][2]string{}
	}
	text, err := json.Marshal(header)
	return string(text), err
}

func decodeHeader(text string) ([][2]string, error) {
	encoded, isBinary := strings.CutPrefix(text, binaryHeader)
	if !isBinary {
		var header [][2]string
		return header, json.Unmarshal([]byte(text), &header)
	}
	var binary [][2][]byte
	if err := json.Unmarshal([]byte(encoded), &binary); err != nil {
		return nil, err
	}
	header := make([][2]string, len(binary))
	for i, line := range binary {
		header[i] = [2]string{string(line[0]), string(line[1])}
	}
	return header, nil
}

// reasonColumn is NULL for no reason.
func reasonColumn(reason string) sql.NullString {
	return sql.NullString{String: idem.Reason(reason), Valid: reason != ""}
}
