import hashlib
import hmac
import sys


def is_signed(secret: str, body: bytes, signature: str | None) -> bool:
    """`body` is the body exactly as received; `signature` is the header X-SVC-Signature, or None."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"sha256={digest}".encode(), (signature or "").encode())


if __name__ == "__main__":
    # python3 verify.py <secret> <signature> < body
    sys.exit(0 if is_signed(sys.argv[1], sys.stdin.buffer.read(), sys.argv[2]) else 1)
