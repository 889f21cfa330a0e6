import { useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { apiErrorOf } from "../../api/api-error.ts";
import { allPages, atCursor } from "../../api/cursor.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";

const KEY = ["sessions"];
const PAGE = 20;
const WHOLE_PAGE = 100;

function readPage(api: ApiClient, limit: number, cursor: string | undefined) {
  return answerOf(api.account.sessions.get({ query: { limit, ...atCursor(cursor) } }));
}

/** A sign-in with a live token. */
export type SignedIn = Awaited<ReturnType<typeof readPage>>["data"][number];

export function useSessions() {
  const api = useApi();
  return useList(KEY, (cursor) => readPage(api, PAGE, cursor));
}

/** The actions on one's own sessions; the list follows them. */
export function useSessionActions() {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: KEY });
  return {
    end: async (one: SignedIn) => {
      await endSession(api, one);
      await refresh();
    },
    /** Ends those of pages that were never shown, too. */
    endOthers: async () => {
      try {
        const sessions = await allPages((cursor) => readPage(api, WHOLE_PAGE, cursor));
        for (const one of sessions) if (!one.is_current) await endSession(api, one);
      } finally {
        await refresh();
      }
    },
  };
}

/** A session that has ended by itself meanwhile is what was asked for. */
async function endSession(api: ApiClient, { id }: SignedIn): Promise<void> {
  try {
    await answerOf(api.account.sessions({ id }).delete());
  } catch (error) {
    if (apiErrorOf(error)?.status !== 404) throw error;
  }
}
