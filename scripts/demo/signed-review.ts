import { createHmac, randomUUID } from "node:crypto";

export function hmac(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Builds the report of a new review in the form in which a review site sends it, and the value of its
 * `X-Provider-Signature`.
 */
export function signedReview(siteId: number, secret: string): { body: string; signature: string } {
  const now = new Date().toISOString();
  const review = {
    external_review_id: randomUUID(),
    rate: 5,
    reviewer: "Ada",
    content: "Friendly people, and on time.",
    reviewed_at: now,
  };
  const event = {
    id: randomUUID(),
    type: "review.created",
    occurred_at: now,
    store_review_site_id: siteId,
    review,
  };
  const body = JSON.stringify({ events: [event] });
  return { body, signature: `sha256=${hmac(secret, body)}` };
}
