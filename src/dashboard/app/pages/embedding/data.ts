import { useQuery, useQueryClient } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { useApi } from "../../session/session.tsx";

const KEY = ["embedding"];

function readEmbedding(api: ApiClient) {
  return answerOf(api.partner.embedding.get());
}

export type Embedding = Awaited<ReturnType<typeof readEmbedding>>;
export type LinkAccess = "read" | "write";

export function useEmbedding() {
  const api = useApi();
  return useQuery({ queryKey: KEY, queryFn: () => readEmbedding(api) });
}

export function useEmbeddingActions() {
  const api = useApi();
  const queries = useQueryClient();
  return {
    /** The origins stand in a text, one a line. */
    save: async (text: string) => {
      const origins = text.split(/[\s,;]+/).filter((line) => line !== "");
      queries.setQueryData(KEY, await answerOf(api.partner.embedding.patch({ origins })));
    },
    /** Answers the address, which is good once. */
    makeLink: (access: LinkAccess) =>
      answerOf(api.partner["portal-links"].post({ pages: ["webhooks"], access })),
  };
}
