#!/bin/sh
# Guards work of its own, written in shell, by the server's service calls: order.sh TOKEN SUBJECT ITEM
# IDEM_URL and IDEM_SERVICE_KEY name the server and the key. TOKEN is what the page sent along, SUBJECT whose it is: what the
# application's subject function yields, in the demo the value of the cookie idem.
set -eu
token=$1 subject=$2 item=$3

# call NAME JSON; without an answer, or with 503, the same once more: what was done and not answered is not done again.
# The key goes by standard input, as everybody may read the arguments of a process.
call() {
	printf 'Authorization: Bearer %s\n' "$IDEM_SERVICE_KEY" |
		curl --silent --max-time 10 --retry 3 --retry-all-errors --header @- --json "$2" "$IDEM_URL/api/idempotent/$1" | tail -n 1
}
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; } # of a flat JSON object on standard input
refuse() { code=$(echo "$1" | member code) && echo "refused: ${code:-no answer}" >&2 && exit 1; }
keep() { while sleep "${IDEM_RENEW:-5}"; do call extend "{\"claim\":\"$claim\"}"; done; } # a third of the server's IDEM_LEASE

place() {
	[ -n "$item" ] || return 1
	echo "ordered $item"
}

case $token$subject in *[\"\\]*) refuse '"code":"token_invalid"' ;; esac # they would be more than words in the JSON
entered=$(call consume "{\"token\":\"$token\",\"action\":\"order.create\",\"subject\":\"$subject\"}")
case $(echo "$entered" | member outcome) in
replayed) # somebody has done it: this is the first answer
	echo "replayed: $(echo "$entered" | member body | base64 -d)"
	exit ;;
accepted) claim=$(echo "$entered" | member claim) ;;
*) refuse "$entered" ;;
esac
keep >/dev/null &
trap "kill $!" EXIT
if ! receipt=$(place); then
	call fail "{\"claim\":\"$claim\"}" >/dev/null # the same token may come again
	echo "failed: an order needs an item" >&2 && exit 1
fi
completed=$(call complete "{\"claim\":\"$claim\",\"status\":201,\"body\":\"$(printf %s "$receipt" | base64 | tr -d '\n')\"}")
[ "$completed" = "{}" ] || refuse "$completed"
echo "attempt $(echo "$entered" | member attempt): $receipt"
