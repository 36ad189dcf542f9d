#!/usr/bin/env python3
"""Guards work of its own, written in Python, by the server's service calls: order.py TOKEN SUBJECT ITEM

IDEM_URL and IDEM_SERVICE_KEY name the server and the key. TOKEN is what the page sent along, SUBJECT whose it is: what the application's subject function yields, in the demo
the value of the cookie idem.
"""
import base64, http.client, json, os, sys, threading, time, urllib.error, urllib.request


def call(name, **members):
    request = urllib.request.Request(
        os.environ["IDEM_URL"] + "/api/idempotent/" + name, json.dumps(members).encode(),
        {"Authorization": "Bearer " + os.environ["IDEM_SERVICE_KEY"], "Content-Type": "application/json"})
    for last in False, False, False, True:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if last or refusal.code != 503:
                sys.exit("refused: " + json.load(refusal)["code"])
        except (OSError, http.client.HTTPException):
            if last:
                raise
        time.sleep(1)  # then the same once more: what was done and not answered is not done again


def keep(claim):
    while True:
        time.sleep(float(os.environ.get("IDEM_RENEW", 5)))  # a third of the server's IDEM_LEASE
        call("extend", claim=claim)


def place(item):
    if not item:
        raise ValueError("an order needs an item")
    return "ordered " + item


token, subject, item = sys.argv[1:]
entered = call("consume", token=token, action="order.create", subject=subject)
if entered["outcome"] == "replayed":  # somebody has done it: this is the first answer
    print("replayed:", base64.b64decode(entered["response"]["body"]).decode())
    sys.exit()
threading.Thread(target=keep, args=[entered["claim"]], daemon=True).start()
try:
    receipt = place(item)
except Exception as failure:
    call("fail", claim=entered["claim"])  # the same token may come again
    sys.exit("failed: %s" % failure)
call("complete", claim=entered["claim"], status=201, body=base64.b64encode(receipt.encode()).decode())
print("attempt %d: %s" % (entered["attempt"], receipt))
