package redisstore

import (
	"encoding/binary"
	"errors"

	"github.com/idemkit/idem"
)

var errResult = errors.New("redisstore: a kept result is damaged")

// encode joins header lines and body: the number of lines, name and value of each with their lengths in front (uvarints), then the body. It is
// part of idem.Format. No text format: header values and bodies may hold any bytes.
func encode(r idem.Result) []byte {
	out := binary.AppendUvarint(nil, uint64(len(r.Header)))
	for _, line := range r.Header {
		for _, part := range line {
			out = binary.AppendUvarint(out, uint64(len(part)))
			out = append(out, part...)
		}
	}
	return append(out, r.Body...)
}

// decode is the reverse; no header and an empty body are nil.
func decode(kept string) (header [][2]string, body []byte, err error) {
	rest := []byte(kept)
	lines, rest, err := length(rest)
	if err != nil {
		return nil, nil, err
	}
	for range lines {
		var line [2]string
		for i := range line {
			var size uint64
			if size, rest, err = length(rest); err != nil {
				return nil, nil, err
			}
			if size > uint64(len(rest)) {
				return nil, nil, errResult
			}
			line[i], rest = string(rest[:size]), rest[size:]
		}
		header = append(header, line)
	}
	if len(rest) > 0 {
		body = rest
	}
	return header, body, nil
}

func length(b []byte) (uint64, []byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errResult
	}
	return n, b[size:], nil
}
