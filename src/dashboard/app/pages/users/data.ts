import { queryOptions } from "@tanstack/react-query";

import {
  allPages,
  answerOf,
  type ApiClient,
  ended,
  pageAt,
  type QueryOf,
} from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { ALL_PAGES, listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import { userBody, userChanges, type UserDraft } from "./user-drafts.ts";

export type UserFilter = QueryOf<ApiClient["admin"]["users"]["get"]>;

export const usersOptions = (api: ApiClient, filter: UserFilter) =>
  listOptions(["users", filter], (cursor) =>
    answerOf(api.admin.users.get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type User = RowOf<typeof usersOptions>;

/** Reads one user by id. */
export const userOptions = (api: ApiClient, id: number | null | undefined) =>
  queryOptions({
    queryKey: ["users", "one", id],
    queryFn: () => answerOf(api.admin.users({ id: String(id) }).get()),
    enabled: typeof id === "number",
    // Cached names may be up to a minute old, because names rarely change.
    staleTime: 60_000,
  });

/** Finds a user by email. Resolves to undefined if no user has the email. */
export async function findByEmail(api: ApiClient, email: string): Promise<User | undefined> {
  return (await answerOf(api.admin.users.get({ query: { email, ...pageAt(undefined) } }))).data[0];
}

/** Reads the sign-ins of a user that have a live token. */
export const userSessionsOptions = (api: ApiClient, id: number) =>
  listOptions(
    ["users", "sessions", id],
    (cursor) => answerOf(api.admin.users({ id }).sessions.get({ query: pageAt(cursor) })),
    ALL_PAGES,
  );

/** Reads from the audit log when a user last signed in; null if the log has no sign-in of the user. */
export const lastSignInOptions = (api: ApiClient, id: number) =>
  queryOptions({
    queryKey: ["audit-log", "last-sign-in", id],
    queryFn: async () => {
      const query = { actor_id: id, action: "AUTH_LOGIN", limit: 1 };
      return (await answerOf(api.admin["audit-log"].get({ query }))).data[0]?.at ?? null;
    },
  });

/** Reads the second factors of a user. */
export const userFactorsOptions = (api: ApiClient, id: number) =>
  queryOptions({
    queryKey: ["users", "factors", id],
    queryFn: () => answerOf(api.admin.users({ id })["second-factors"].get()),
  });

/** Requests that create or change users. Each request invalidates all cached data of users. */
export function useUserActions() {
  const api = useApi();
  const { users } = api.admin;
  const { company: platform } = useSession();
  const { inBackground, andRead, refresh } = useRefresh(["users"]);
  return {
    create: (draft: UserDraft) => inBackground(answerOf(users.post(userBody(draft, platform.id)))),
    change: (user: User, draft: UserDraft) =>
      andRead(answerOf(users({ id: user.id }).patch(userChanges(user, draft)))),
    invite: (id: number) => andRead(answerOf(users({ id }).invite.post())),
    unlock: (id: number) => andRead(answerOf(users({ id }).unlock.post())),
    resetFactors: (id: number) => andRead(answerOf(users({ id })["second-factors"].delete())),
    endSession: (id: number, sessionId: string) =>
      andRead(ended(users({ id }).sessions({ sessionId }).delete())),
    /** Ends all sessions of the user except the one that sends the requests, if it is the user's own. */
    endSessions: async (id: number) => {
      const { sessions } = users({ id });
      try {
        const all = await allPages((cursor) => answerOf(sessions.get({ query: pageAt(cursor) })));
        for (const { id: sessionId, is_current: isCurrent } of all)
          if (!isCurrent) await ended(sessions({ sessionId }).delete());
      } finally {
        await refresh();
      }
    },
    /** Mails the user a link to choose a new password. */
    sendPasswordReset: (id: number) => andRead(ended(users({ id })["password-reset"].post())),
    setActive: (id: number, isActive: boolean) => {
      const user = users({ id });
      return andRead(answerOf(isActive ? user.activate.post() : user.deactivate.post()));
    },
  };
}
