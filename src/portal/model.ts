import { Type, type Static } from "@sinclair/typebox";

import { PORTAL_PAGE } from "../auth/access/portal-pages.ts";
import { literals } from "../http/principal.ts";
import { instantAnswer, receiving, secretText, storableText } from "../http/text.ts";

const closed = { additionalProperties: false } as const;
/** The most pages that a portal link may open. It is the number of subscriptions that a partner may have. */
const MAX_PAGES = 2;
const TTL_S = { minimum: 30, maximum: 3_600 } as const;
export const DEFAULT_TTL_S = 300;
const MAX_ORIGINS = 10;
/** The most characters of an origin: a host name (253) with a scheme and a port. */
const ORIGIN_CHARS = 267;

const page = Type.String({
  pattern: PORTAL_PAGE,
  examples: ["webhooks"],
  explain: "must be webhooks, or webhooks/ and the id of a subscription",
});

export const portalLinkBody = Type.Object(
  {
    pages: Type.Array(page, {
      minItems: 1,
      maxItems: MAX_PAGES,
      uniqueItems: true,
      description: "Pages: `webhooks`, or `webhooks/{id}` for one subscription.",
    }),
    access: Type.Optional(
      literals(["read", "write"], { description: "Access; `read` by default." }),
    ),
    theme: Type.Optional(
      literals(["light", "dark"], {
        description: "Colour scheme; the browser's by default.",
      }),
    ),
    ttl_s: Type.Optional(
      Type.Integer({
        ...TTL_S,
        explain: `must be a whole number of seconds from ${TTL_S.minimum} to ${TTL_S.maximum}`,
        description: `Seconds in which the link works; ${DEFAULT_TTL_S} by default.`,
      }),
    ),
  },
  {
    ...closed,
    title: "PortalLinkInput",
    examples: [{ pages: ["webhooks"], access: "read", theme: "light", ttl_s: 300 }],
  },
);
export type PortalLinkBody = Static<typeof portalLinkBody>;

export const portalLinkAnswer = Type.Object(
  {
    url: secretText({ description: "The link." }),
    expires_at: instantAnswer(),
  },
  {
    title: "PortalLink",
    examples: [
      {
        url: "https://reviews.partner.example/embed/01jwnb9pr0zv8x2d3f4g5h6j7k?theme=light#code=b1946ac92492d2347c6235b4d2611184",
      },
    ],
  },
);
export type PortalLink = Static<typeof portalLinkAnswer>;

export const redeemBody = Type.Object(
  { code: storableText([1, 128]) },
  { ...closed, title: "PortalCode" },
);

export const portalSessionAnswer = Type.Object(
  {
    token: secretText(),
    token_type: Type.Literal("Bearer"),
    expires_in: Type.Integer(),
    scope: Type.String(),
    pages: Type.Array(Type.String(), { description: "Pages that the session may open." }),
  },
  { title: "PortalSession", examples: [{ expires_in: 3_600, pages: ["webhooks"] }] },
);
export type PortalSession = Static<typeof portalSessionAnswer>;

const embedding = {
  origins: receiving(
    Type.Array(storableText([1, ORIGIN_CHARS]), {
      maxItems: MAX_ORIGINS,
      uniqueItems: true,
      description: "Origins that may frame the portal.",
    }),
  ),
};
export const embeddingBody = Type.Object(embedding, {
  ...closed,
  title: "Embedding",
  examples: [{ origins: ["https://tools.partner.example"] }],
});
/**
 * The schema of the response. It is not the same object as the schema of the body: Elysia keeps one validator per
 * schema object, and responses are not validated.
 */
export const embeddingObject = Type.Object(embedding, {
  ...closed,
  title: "Embedding",
  examples: [{ origins: ["https://tools.partner.example"] }],
});
export type Embedding = Static<typeof embeddingObject>;

/**
 * The pattern of an origin. The text goes unescaped into a Content-Security-Policy, so the pattern excludes the
 * characters that have a meaning there. It also excludes IPv6 addresses, which such policies do not support, labels
 * that begin or end with a hyphen, and port 0.
 */
const ORIGIN_PATTERN =
  /^(?:https:\/\/[a-z\d]+(?:-+[a-z\d]+)*(?:\.[a-z\d]+(?:-+[a-z\d]+)*)*|http:\/\/(?:localhost|127\.0\.0\.1))(?::[1-9]\d{0,4})?$/;

/** Returns whether a text is an origin as browsers send it, with https unless the host is the local machine. */
export function isOrigin(text: string): boolean {
  return ORIGIN_PATTERN.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
