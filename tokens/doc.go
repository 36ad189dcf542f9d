// Package tokens signs and verifies one-time tokens: permissions to claim one operation.
//
// A token is a compact JWS (RFC 7515) with the header fields alg and kid and the claims jti, rid, act, sub, iat, exp
// and iss. Verifying one asks nobody: whether it was spent before is known to an idem.TokenStore, which keeps a token by
// its jti. Who issues tokens therefore also stores them, with one call to idem.TokenStore.Issue for all of an answer.
//
// Keys form a ring whose first key signs and all of which verify. To rotate without refusing anybody: add the new key
// second, deploy; move it first, deploy; remove the old one after the life of a token.
//
// Claims are judged here and not by golang-jwt, which knows one leeway for all times and cannot tell an expired but
// authentic token, under which a result may still stand, from a worthless one.
package tokens
