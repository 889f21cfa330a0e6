# WEBHOOK_SECRET=... PORT=4000 python3 receive.py
import json
import os
import sys
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import is_signed

SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    sys.exit("Set WEBHOOK_SECRET to the subscription's secret.")
handled = set()  # store these in a database table


def answer(headers, body: bytes) -> int:
    names = ("X-SVC-Signature", "X-SVC-Signature-Previous")
    if not is_signed(SECRET, body, *(headers.get(name) for name in names)):
        return 401
    event = json.loads(body)
    if "delivered_at" in event:
        age = datetime.now(timezone.utc) - datetime.fromisoformat(event["delivered_at"])
        if abs(age.total_seconds()) > 300:
            return 401
    if event["event_id"] in handled:
        return 200
    print(event["event"], event["event_id"], flush=True)  # put the event into your queue
    handled.add(event["event_id"])
    return 204


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(answer(self.headers, body))
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Receiver).serve_forever()
