import { Type, type Static } from "@sinclair/typebox";

import { PORTAL_PAGE } from "../auth/portal-pages.ts";
import { literals } from "../http/principal.ts";
import { instantAnswer, storableText } from "../http/text.ts";

const closed = { additionalProperties: false } as const;
/** A partner has no more subscriptions. */
const MAX_PAGES = 2;
const TTL_S = { minimum: 30, maximum: 3_600 } as const;
export const DEFAULT_TTL_S = 300;
const MAX_ORIGINS = 10;
/** A host name has 253 characters, and a scheme and a port stand around it. */
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
      description: "`webhooks`, or `webhooks/{id}` for one.",
    }),
    access: Type.Optional(literals(["read", "write"], { description: "`read` if absent." })),
    theme: Type.Optional(literals(["light", "dark"], { description: "The browser's if absent." })),
    ttl_s: Type.Optional(
      Type.Integer({
        ...TTL_S,
        explain: `must be a whole number of seconds from ${TTL_S.minimum} to ${TTL_S.maximum}`,
        description: `Of the link; ${DEFAULT_TTL_S} if absent.`,
      }),
    ),
  },
  { ...closed, title: "NewPortalLink" },
);
export type PortalLinkBody = Static<typeof portalLinkBody>;

export const portalLinkAnswer = Type.Object(
  {
    url: Type.String({ description: "The link." }),
    expires_at: instantAnswer(),
  },
  { title: "PortalLink" },
);
export type PortalLink = Static<typeof portalLinkAnswer>;

export const redeemBody = Type.Object(
  { code: storableText([1, 128]) },
  { ...closed, title: "PortalCode" },
);

export const portalSessionAnswer = Type.Object(
  {
    token: Type.String(),
    token_type: Type.Literal("Bearer"),
    expires_in: Type.Integer(),
    scope: Type.String(),
    pages: Type.Array(Type.String()),
  },
  { title: "PortalSession" },
);
export type PortalSession = Static<typeof portalSessionAnswer>;

const embedding = {
  origins: Type.Array(storableText([1, ORIGIN_CHARS]), {
    maxItems: MAX_ORIGINS,
    uniqueItems: true,
    description: "Who may frame the portal.",
  }),
};
export const embeddingBody = Type.Object(embedding, { ...closed, title: "Embedding" });
/** An object of its own: Elysia has one validator for each, and answers are not checked. */
export const embeddingObject = Type.Object(embedding, { ...closed, title: "Embedding" });
export type Embedding = Static<typeof embeddingObject>;

/**
 * It goes into a policy of the browser as it is, so it has none of a policy's own letters, which host names may have
 * elsewhere; nor an IPv6 address, which policies do not take.
 */
const ORIGIN =
  /^(?:https:\/\/[a-z\d-]+(?:\.[a-z\d-]+)*|http:\/\/(?:localhost|127\.0\.0\.1))(?::\d{1,5})?$/;

/** Whether it is an origin as browsers send it, over https but for the developer's own machine. */
export function isOrigin(text: string): boolean {
  return ORIGIN.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
