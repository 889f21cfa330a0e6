import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import type { ApiClient } from "../../api/api-client.ts";
import { apiErrorOf } from "../../api/api-error.ts";
import { useApi } from "../../session/session.tsx";

const PATH = "/account/api-token";

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
    regenerate: async () => setToken(await api.call("POST", `${PATH}/regenerate`, {})),
    remove: async () => {
      await api.call("DELETE", PATH, {});
      setToken(null);
    },
  };
}

async function viewToken(api: ApiClient) {
  try {
    return await api.call("GET", PATH, {});
  } catch (error) {
    if (apiErrorOf(error)?.status === 404) return null;
    throw error;
  }
}

export type PersonalToken = NonNullable<Awaited<ReturnType<typeof viewToken>>>;

async function generateToken(api: ApiClient): Promise<PersonalToken | null> {
  try {
    return await api.call("POST", PATH, {});
  } catch (error) {
    if (apiErrorOf(error)?.code !== "token_exists") throw error;
    // Another tab was quicker.
    return viewToken(api);
  }
}
