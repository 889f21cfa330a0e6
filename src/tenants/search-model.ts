import { Type } from "@sinclair/typebox";

import { literals } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { orNull, searchText } from "../http/text.ts";
import { closed } from "./model.ts";

export const SearchBody = Type.Object(
  {
    q: Object.assign(searchText(), {
      description: "An id, or a part of a name, email, URL or domain.",
    }),
  },
  { ...closed, title: "SearchInput", examples: [{ q: "stellar" }] },
);

const KINDS = [
  "partner",
  "account",
  "store",
  "user",
  "subscription",
  "event",
  "service",
  "sso_connection",
  "oauth_client",
] as const;

const SearchHitObject = Type.Object(
  {
    kind: literals(KINDS, { description: "Kind of the record." }),
    id: Type.String(),
    name: Type.String(),
    detail: orNull(Type.String(), { description: "Email, URL, label, issuer or other id." }),
    company: orNull(Type.String(), { description: "Name of its company." }),
    partner_id: orNull(Type.Integer()),
    subscription_id: orNull(Type.String()),
  },
  { title: "SearchHit", examples: [{ kind: "partner", id: "7", name: "Stellar Partners" }] },
);
export type SearchHit = RowOf<typeof SearchHitObject>;

export const SearchAnswer = Type.Object(
  { data: Type.Array(SearchHitObject) },
  { title: "SearchHits", examples: [{ data: [] }] },
);
