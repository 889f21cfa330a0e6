import { Type, type Static } from "@sinclair/typebox";

import type { reviewSites, storeReviewSites } from "../../db/schema/providers.ts";
import type { planObject } from "../auth/model.ts";
import { pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import { type RowOf, shown } from "../http/shown.ts";
import { instantAnswer, orNull, rowId, searchText, secretText } from "../http/text.ts";
import { PROVIDER_SLUG } from "../intake/provider-model.ts";
import {
  changedExternalId,
  closed,
  displayName,
  syncedFields,
  updatedSince,
  withExternalId,
} from "./model.ts";

const FEATURE_PATTERN = "^[a-z0-9][a-z0-9_]{0,63}$";
const MAX_FEATURES = 100;

// ------------------------------------------------------------------------------------------------ plans

export const PlanBody = Type.Object(
  {
    name: displayName,
    /** Features that an account of this plan may use. The platform defines the names. */
    features: Type.Optional(
      Type.Array(
        Type.String({
          pattern: FEATURE_PATTERN,
          explain: "must be 1 to 64 of a-z, 0-9 and _, beginning with a letter or digit",
        }),
        { maxItems: MAX_FEATURES, uniqueItems: true },
      ),
    ),
  },
  { ...closed, title: "PlanInput", examples: [{ name: "Growth", features: ["webhooks"] }] },
);
export type NewPlan = Static<typeof PlanBody>;

export const PlanChanges = Type.Partial(PlanBody, {
  ...closed,
  title: "PlanChanges",
  examples: [{ name: "Growth" }],
});
export type PlanUpdate = Static<typeof PlanChanges>;

export type Plan = Required<Static<typeof planObject>>;
/** The columns of a plan that are set by a request. */
export type PlanFields = Pick<Plan, "name" | "features">;

// ------------------------------------------------------------------------------------------------ stores

export const StoreBody = Type.Object(
  { account_id: rowId(), name: displayName, ...withExternalId },
  { ...closed, title: "StoreInput" },
);
export type NewStore = Static<typeof StoreBody>;

/** The body of a change of a store: any subset of its fields. The account of a store cannot change. */
export const StoreChanges = Type.Partial(Type.Object({ name: displayName, ...changedExternalId }), {
  ...closed,
  title: "StoreChanges",
});
export type StoreUpdate = Static<typeof StoreChanges>;

export const storeQuery = Type.Object({
  ...pageQuery(isRowId),
  account_id: Type.Optional(rowId()),
  q: Type.Optional(searchText()),
  ...updatedSince,
});
type StoreQuery = Static<typeof storeQuery>;
/** Filter of a list of stores. An operator may list the stores of all partners; a partner lists only its own stores. */
export type StoreFilter = Pick<StoreQuery, "account_id" | "updated_since" | "q"> & {
  readonly partner_id?: number;
};

// ------------------------------------------------------------------------------------------------ connections

/**
 * Body that connects a store to a review site. After that, the provider can report events for the id of the new
 * connection.
 */
export const StoreReviewSiteBody = Type.Object(
  { store_id: rowId(), provider_id: rowId(), ...withExternalId },
  { ...closed, title: "StoreReviewSiteInput" },
);
export type NewStoreReviewSite = Static<typeof StoreReviewSiteBody>;

/**
 * The body of a change of a connection. It contains only the external id, because no other field can be changed by an
 * operator.
 */
export const StoreReviewSiteChanges = Type.Partial(Type.Object(changedExternalId), {
  ...closed,
  title: "StoreReviewSiteChanges",
});
export type StoreReviewSiteUpdate = Static<typeof StoreReviewSiteChanges>;

export const storeReviewSiteQuery = Type.Object({
  ...pageQuery(isRowId),
  account_id: Type.Optional(rowId()),
  store_id: Type.Optional(rowId()),
  ...updatedSince,
});
export type StoreReviewSiteQuery = Static<typeof storeReviewSiteQuery>;

const axis = Type.Object(
  {
    connected: Type.Boolean(),
    error_code: orNull(Type.String()),
  },
  { title: "AdminAxis", description: "`pull` collects reviews, `post` posts responses." },
);

export const StoreReviewSiteObject = Type.Object(
  {
    id: Type.Integer(),
    store_id: Type.Integer(),
    account_id: Type.Integer(),
    partner_id: Type.Integer(),
    /** The provider's slug, a short unique name. */
    provider: Type.String(),
    pull: axis,
    post: axis,
    /** Only a single store shows it. */
    last_review_at: Type.Optional(
      orNull(instantAnswer(), { description: "Time of its latest review." }),
    ),
    ...syncedFields,
  },
  { title: "AdminStoreReviewSite", examples: [{ id: 11 }] },
);

export type StoreReviewSite = Omit<RowOf<typeof StoreReviewSiteObject>, "pull" | "post"> &
  Pick<typeof storeReviewSites.$inferSelect, "pullErrorCode" | "postErrorCode"> & {
    readonly providerId: number;
  };

const axisOf = (errorCode: string | null) => ({ connected: errorCode === null, errorCode });

const withAxes = (one: StoreReviewSite) => ({
  ...one,
  pull: axisOf(one.pullErrorCode),
  post: axisOf(one.postErrorCode),
});

export const showStoreReviewSite = (one: StoreReviewSite): Static<typeof StoreReviewSiteObject> =>
  shown(StoreReviewSiteObject, withAxes(one));

/** A store with its connections, of which it has at most one for each provider. */
export const StoreObject = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    account_id: Type.Integer(),
    partner_id: Type.Integer(),
    review_sites: Type.Array(StoreReviewSiteObject, { description: "Its connections." }),
    ...syncedFields,
  },
  { title: "Store", examples: [{ id: 3, name: "Main Street", review_sites: [] }] },
);
export type Store = Omit<RowOf<typeof StoreObject>, "reviewSites">;

export const showStore = (
  store: Store,
  links: readonly StoreReviewSite[],
): Static<typeof StoreObject> => shown(StoreObject, { ...store, reviewSites: links.map(withAxes) });

// ------------------------------------------------------------------------------------------------ providers

export const ProviderBody = Type.Object(
  {
    slug: Type.String({
      pattern: PROVIDER_SLUG,
      explain: "must be 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit",
    }),
    name: displayName,
    requires_timestamp: Type.Optional(
      Type.Boolean({
        description: "Whether events without a signed timestamp are rejected; false if absent.",
      }),
    ),
  },
  { ...closed, title: "ProviderInput", examples: [{ slug: "google", name: "Google" }] },
);

export type NewProvider = Static<typeof ProviderBody>;

/** The slug of a provider cannot change, because the provider's URL and its sealed secret depend on it. */
export const ProviderChanges = Type.Partial(Type.Omit(ProviderBody, ["slug"]), {
  ...closed,
  title: "ProviderChanges",
  examples: [{ name: "Google" }],
});
export type ProviderUpdate = Static<typeof ProviderChanges>;

/** The longest time in hours for which a provider's previous secret stays valid (contract 10.2). */
const MAX_OVERLAP_HOURS = 168;

export const ProviderRotation = Type.Object(
  {
    grace_period_hours: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_HOURS,
        description: "Hours for which the previous secret still verifies events; 24 if absent.",
      }),
    ),
  },
  { ...closed, title: "ProviderRotation", examples: [{ grace_period_hours: 24 }] },
);

const provider = {
  id: Type.Integer(),
  slug: Type.String(),
  name: Type.String(),
  requires_timestamp: Type.Boolean({
    description: "Whether events without a signed timestamp are rejected.",
  }),
  secret_fingerprint: Type.String({
    pattern: "^[0-9a-f]{16}$",
    description: "The first 8 bytes of the SHA-256 of the current secret.",
  }),
  previous_secret_expires_at: orNull(instantAnswer(), {
    description: "Time until which the previous secret is also valid; null without one.",
  }),
  last_refused_at: orNull(instantAnswer(), {
    description: "Time of the latest request with a wrong signature.",
  }),
};

export const ProviderObject = Type.Object(provider, {
  title: "Provider",
  examples: [{ id: 2, name: "Google" }],
});
export type Provider = RowOf<typeof ProviderObject>;
/** A provider as it is stored, with its sealed secret instead of the fingerprint. */
export type StoredProvider = Omit<Provider, "secretFingerprint" | "lastRefusedAt"> &
  Pick<typeof reviewSites.$inferSelect, "sealedSecret">;

/**
 * A provider with its secret. Only the responses to the creation of the provider and to the rotation of its secret
 * contain it.
 */
export const ProviderWithSecret = Type.Object(
  { ...provider, secret: secretText() },
  {
    title: "ProviderWithSecret",
    examples: [{ secret: "9d41a7be52c0f863e1d7094b6a2c58f3b7e60d914c8f25a3e07b1d6c94f8a250" }],
    extends: ProviderObject,
  },
);
