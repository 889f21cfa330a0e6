import hashlib
import hmac
import sys


def is_signed(secret: str, body: bytes, *signatures: str | None) -> bool:
    """`body` is the body exactly as received; give it the headers X-SVC-Signature and X-SVC-Signature-Previous."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    expected = f"sha256={digest}".encode()
    return any(hmac.compare_digest(expected, (one or "").encode()) for one in signatures)


if __name__ == "__main__":
    # python3 verify.py <secret> <signature> [<previous signature>] < body
    sys.exit(0 if is_signed(sys.argv[1], sys.stdin.buffer.read(), *sys.argv[2:]) else 1)
