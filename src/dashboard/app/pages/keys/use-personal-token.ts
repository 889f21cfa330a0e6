import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient } from "../../api/api-client.ts";
import { apiErrorOf } from "../../api/api-error.ts";
import { useApi } from "../../session/session.tsx";

/**
 * Reads the token when it is asked to; until then it is undefined, and null where there is none. Nothing but the
 * component holds it, so that leaving the page forgets it.
 */
export function usePersonalToken() {
  const api = useApi();
  const [token, setToken] = useState<PersonalToken | null>();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (read: typeof viewToken) => read(api),
    onSuccess: (read) => setToken(read),
  });
  return {
    token,
    error,
    isBusy: isPending,
    open: () => mutate(viewToken),
    generate: () => mutate(generateToken),
    regenerate: async () => setToken(await answerOf(api.account["api-token"].regenerate.post())),
    remove: async () => {
      await answerOf(api.account["api-token"].delete());
      setToken(null);
    },
  };
}

async function viewToken(api: ApiClient) {
  try {
    return await answerOf(api.account["api-token"].get());
  } catch (error) {
    if (apiErrorOf(error)?.status === 404) return null;
    throw error;
  }
}

export type PersonalToken = NonNullable<Awaited<ReturnType<typeof viewToken>>>;

async function generateToken(api: ApiClient): Promise<PersonalToken | null> {
  try {
    return await answerOf(api.account["api-token"].post());
  } catch (error) {
    if (apiErrorOf(error)?.code !== "token_exists") throw error;
    // Another tab was quicker.
    return viewToken(api);
  }
}
