import { expect, test } from "bun:test";
import { verify } from "@octokit/webhooks-methods";
import { hmacSha256Hex } from "../../../../src/lib/secrets.ts";

const SECRET = "0123456789abcdef".repeat(4);

test("signs the body with the secret as it is shown, like openssl dgst -sha256 -hmac", () => {
  // printf '{"event":"webhook.test"}' | openssl dgst -sha256 -hmac "$SECRET"
  expect(hmacSha256Hex(SECRET, '{"event":"webhook.test"}')).toBe(
    "ac36744c5e569bc2ef9eec8ae6b776dc44cc307d6bd532307f9044e20a435c8b",
  );
});

test("a GitHub-style verifier accepts the signature and refuses any other body or secret", async () => {
  const body = '{"reviewer":"Zoë 🦊","content":"\\u0000 \u2028"}';
  const signature = `sha256=${hmacSha256Hex(SECRET, body)}`;
  expect(await verify(SECRET, body, signature)).toBe(true);
  expect(await verify(SECRET, `${body} `, signature)).toBe(false);
  expect(await verify(SECRET.replace("0", "1"), body, signature)).toBe(false);
});

test("signs text and its UTF-8 bytes alike, an unpaired surrogate too", () => {
  for (const text of ["", "plain", "Zoë 🦊", "\ud800"])
    expect(hmacSha256Hex(SECRET, text)).toBe(hmacSha256Hex(SECRET, new TextEncoder().encode(text)));
});
