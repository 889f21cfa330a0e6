// A generated platform in the format of an import (contract 10.9).

export const OLD_PASSWORD = "geheim Straße 12";

/** Hashes of `OLD_PASSWORD` by passlib 1.7.4, bcrypt 5.0, argon2-cffi 25.1 and Django 5.2. */
export const OLD_HASHES = {
  bcrypt: "$2y$06$1lirMhdROLa/gbZPa8I9Sel9HqoFaZSe95QeDY/z4rmqqwo70VsCy",
  argon2i:
    "$argon2i$v=19$m=4096,t=3,p=2$W+DUMJ2V4FU01qlbxMDE3A$ptbeJ8CPUuY1jabXhB++xlBzwws9Gyg3l4PN7SDoPBs",
  argon2id:
    "$argon2id$v=19$m=65536,t=2,p=4$3x1vpxmjNStcZnD1pH3sLg$pv2gh8vUfxugltTwQW5NSkc9g4ZpJJSDBaI6keCT7yE",
  django: "pbkdf2_sha256$10000$salty123$nhc1dvdNxTsJkY/4gjVQb9ynUWcw+hGUuK6OJ18GUwE=",
  scrypt:
    "$scrypt$ln=14,r=8,p=1$cq6VUuo9R2iN8V4rBcBYqw$QCvwrm091M3jasAnEic3o4YYq6jHlqowdfptSKoMiQA",
  phpass: "$P$B53I8.lRgFP6JtOKwq3wbws0bZK53R1",
} as const;

/** The number of records of each kind. A partner has an immediate and a batch subscription. */
export interface Sizes {
  readonly partners: number;
  readonly accounts: number;
  readonly stores: number;
  readonly users: number;
  readonly reviews: number;
}

/** The first id of each kind, far from the ids that the product draws. */
export const FIRST_ID = 1_000;
/** The event id of a history line without one depends on its time, which is therefore fixed. */
const REVIEWED_AT = "2025-03-01T10:00:00.000+00:00";

export type Line = Readonly<Record<string, unknown>> & { readonly kind: string };

export const oldSecret = (partner: number) => `old-webhook-secret-of-partner-${partner}`;
export const oldClientSecret = (partner: number) => `old-client-secret-of-${partner}`;
export const emailOf = (user: number) => `user${user}@moved.example`;

/** Generates a platform: every tenth review has a response, every 50th a flag, every fifth a row of the history. */
export function* platformLines(sizes: Sizes, webhookUrl: string): Generator<Line> {
  const { partners, accounts, stores, users, reviews } = sizes;
  const one = (of: number, index: number) => FIRST_ID + (index % of);
  yield { kind: "plan", id: FIRST_ID, name: "Moved", features: ["reviews"] };
  for (let i = 0; i < partners; i++) {
    const id = FIRST_ID + i;
    yield { kind: "partner", id, external_id: `p-${i}`, name: `Partner ${i}` };
  }
  // Accounts share a table with partners, so their ids continue.
  const firstAccount = FIRST_ID + partners;
  for (let i = 0; i < accounts; i++)
    yield {
      kind: "account",
      id: firstAccount + i,
      external_id: `a-${i}`,
      name: `Account ${i}`,
      partner_id: one(partners, i),
      plan_id: FIRST_ID,
    };
  for (let i = 0; i < stores; i++)
    yield {
      kind: "store",
      id: FIRST_ID + i,
      external_id: `s-${i}`,
      account_id: `a-${i % accounts}`,
      name: `Store ${i}`,
    };
  yield {
    kind: "review_site",
    id: FIRST_ID,
    slug: "old-site",
    name: "Old site",
    secret: "site-secret",
  };
  for (let i = 0; i < stores; i++)
    yield {
      kind: "connection",
      id: FIRST_ID + i,
      external_id: `c-${i}`,
      store_id: FIRST_ID + i,
      review_site: "old-site",
    };
  const hashes = Object.values(OLD_HASHES);
  for (let i = 0; i < users; i++) {
    const isPartners = i < partners;
    yield {
      kind: "user",
      id: FIRST_ID + i,
      external_id: `u-${i}`,
      ...(isPartners
        ? { partner_id: FIRST_ID + i, role: "partner_owner" }
        : { account_id: firstAccount + (i % accounts), role: "account_owner" }),
      email: emailOf(i),
      name: `User ${i}`,
      password_hash: hashes[i % hashes.length],
    };
  }
  for (let i = 0; i < partners; i++)
    yield {
      kind: "oauth_client",
      client_id: `old.client-${i}`,
      partner_id: `p-${i}`,
      name: `Client ${i}`,
      client_secret: oldClientSecret(i),
      redirect_uris: ["https://app.moved.example/callback"],
      scopes: ["webhooks:read"],
    };
  for (let i = 0; i < partners; i++)
    for (const kind of ["immediate", "batch"])
      yield {
        kind: "subscription",
        partner_id: `p-${i}`,
        label: `Old ${kind}`,
        webhook_url: webhookUrl,
        delivery_kind: kind,
        ...(kind === "batch" && { batch_interval_hours: 24, standard_webhooks: true }),
        secret: oldSecret(i),
      };
  for (let i = 0; i < reviews; i++)
    yield {
      kind: "review",
      id: FIRST_ID + i,
      external_id: `r-${i}`,
      connection_id: one(stores, i),
      external_review_id: `old-${i}`,
      rate: 1 + (i % 5),
      reviewer: `Reviewer ${i}`,
      reviewer_email: `reviewer${i}@mail.example`,
      content: `The service of visit ${i} was as expected, and the people were friendly.`,
      reviewed_at: REVIEWED_AT,
    };
  for (let i = 0; i < reviews; i += 10)
    yield {
      kind: "response",
      review_id: `r-${i}`,
      body: "Thank you for your visit.",
      responded_at: "2025-03-02T10:00:00.000+00:00",
    };
  for (let i = 0; i < reviews; i += 50)
    yield { kind: "flag", review_id: FIRST_ID + i, status: "open", reason: "Not a customer" };
  for (let i = 0; i < reviews; i += 5)
    yield {
      kind: "history",
      external_id: `h-${i}`,
      event: "review_received",
      review_id: FIRST_ID + i,
      actor: { type: "system" },
      metadata: { content: "As expected.", reviewed_at: REVIEWED_AT },
      occurred_at: REVIEWED_AT,
    };
}

/** Returns the number of lines of each kind. */
export function countAttempts(lines: Iterable<Line>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of lines) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
