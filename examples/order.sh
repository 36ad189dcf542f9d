#!/bin/sh
# Guards work of its own, written in shell, by the server's service calls: order.sh TOKEN SUBJECT ITEM
# IDEM_URL and IDEM_SERVICE_KEY name the server and the key. TOKEN is what the page sent along, SUBJECT whose it is, as the server knows them.
set -eu
token=$1 subject=$2 item=$3

call() { # name, JSON; the key goes by standard input, as everybody may read the arguments of a process
	printf 'header = "Authorization: Bearer %s"\n' "$IDEM_SERVICE_KEY" |
		curl --silent --show-error --max-time 10 --config - --json "$2" "$IDEM_URL/api/idempotent/$1"
}
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; } # of a flat JSON object on standard input

place() {
	[ -n "$item" ] || return 1
	echo "ordered $item"
}

entered=$(call consume "{\"token\":\"$token\",\"action\":\"order.create\",\"subject\":\"$subject\"}")
case $(echo "$entered" | member outcome) in
replayed) # somebody has done it: this is the first answer
	echo "replayed: $(echo "$entered" | member body | base64 -d)"
	exit ;;
accepted) claim=$(echo "$entered" | member claim) ;;
*) echo "refused: $(echo "$entered" | member code)" >&2 && exit 1 ;;
esac
call extend "{\"claim\":\"$claim\"}" >/dev/null # each time before a third of the lease is over
if ! receipt=$(place); then
	call fail "{\"claim\":\"$claim\"}" >/dev/null # the same token may come again
	echo "failed: an order needs an item" >&2 && exit 1
fi
call complete "{\"claim\":\"$claim\",\"status\":201,\"body\":\"$(printf %s "$receipt" | base64 | tr -d '\n')\"}" >/dev/null
echo "attempt $(echo "$entered" | member attempt): $receipt"
