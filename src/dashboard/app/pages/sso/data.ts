import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

const CONNECTIONS = ["sso-connections"];

export const ssoConnectionsOptions = (api: ApiClient, filter: { readonly company_id?: number }) =>
  listOptions([...CONNECTIONS, "list", filter], (cursor) =>
    answerOf(api.admin["sso-connections"].get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type SsoConnection = RowOf<typeof ssoConnectionsOptions>;

/** Returns the state of a connection: `unverified` as long as none of its domains is verified. */
export function connectionState({ is_active: isActive, domain_proofs: proofs }: SsoConnection) {
  if (!isActive) return "inactive";
  return proofs.some(({ proved_at: at }) => at !== null) ? "active" : "unverified";
}

export type DomainProof = SsoConnection["domain_proofs"][number];

export const ssoConnectionOptions = (api: ApiClient, id: string) =>
  queryOptions({
    queryKey: [...CONNECTIONS, id],
    queryFn: () => answerOf(api.admin["sso-connections"]({ id }).get()),
  });

type NewUserRole = NonNullable<SsoConnection["new_users"]>["role"];

/** Values of the form for an SSO connection before they are sent. The fields have the same names as in the API. */
export interface SsoDraft extends Pick<
  SsoConnection,
  "issuer" | "client_id" | "password_login" | "trust_email"
> {
  readonly company_id: number | undefined;
  /** Client secret at the identity provider. In an update, an empty text means that the secret does not change. */
  readonly client_secret: string;
  readonly domains: readonly string[];
  /** Role of the users that a sign-in creates; undefined if none are created. */
  readonly role: NewUserRole | undefined;
  readonly store_ids: readonly string[];
}

export const EMPTY_SSO: SsoDraft = {
  company_id: undefined,
  issuer: "",
  client_id: "",
  client_secret: "",
  domains: [],
  password_login: true,
  trust_email: false,
  role: undefined,
  store_ids: [],
};

export const ssoDraft = ({ new_users: made, ...connection }: SsoConnection): SsoDraft => ({
  ...connection,
  client_secret: "",
  role: made?.role,
  store_ids: made?.store_ids?.map(String) ?? [],
});

/** Roles that a sign-in may give to a new user, by the type of the company. */
export const NEW_USER_ROLES = {
  partner: ["partner_admin", "partner_owner"],
  account: ["account_user", "account_owner", "location_user"],
} as const satisfies Record<string, readonly NewUserRole[]>;

/** Returns the settings that the API accepts in both the creation and the update of an SSO connection. */
const ssoSettings = ({ issuer, client_id: clientId, domains, ...draft }: SsoDraft) => ({
  issuer: issuer.trim(),
  client_id: clientId.trim(),
  domains: [...domains],
  password_login: draft.password_login,
  trust_email: draft.trust_email,
  new_users:
    draft.role === undefined
      ? null
      : {
          role: draft.role,
          ...(draft.role === "location_user" && { store_ids: draft.store_ids.map(Number) }),
        },
  ...(draft.client_secret !== "" && { client_secret: draft.client_secret }),
});

/**
 * Requests that create, change or delete SSO connections. Each request invalidates the cached list of SSO
 * connections.
 */
export function useSsoActions() {
  const connections = useApi().admin["sso-connections"];
  const { inBackground, andRead } = useRefresh(CONNECTIONS);
  return {
    create: (draft: SsoDraft) => {
      // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
      // for the field.
      const { company_id = 0 } = draft;
      return inBackground(answerOf(connections.post({ company_id, ...ssoSettings(draft) })));
    },
    change: (id: string, draft: SsoDraft) =>
      inBackground(answerOf(connections({ id }).patch(ssoSettings(draft)))),
    setActive: (id: string, isActive: boolean) =>
      andRead(answerOf(connections({ id }).patch({ is_active: isActive }))),
    prove: (id: string, domain: string) =>
      andRead(answerOf(connections({ id })["prove-domain"].post({ domain }))),
    remove: (id: string) => inBackground(answerOf(connections({ id }).delete())),
  };
}
